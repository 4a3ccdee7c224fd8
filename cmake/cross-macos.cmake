# Cross-compiles for macOS with Debian's clang and lld; scripts/lib/cross uses it. ROLLGATE_MACOS_CPU is arm64
# or x86_64, ROLLGATE_ZIG_LIB the folder with the headers of macOS and libc++. There are no libraries:
# the linker leaves every symbol that it does not find to the start of the program.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ROLLGATE_MACOS_CPU ROLLGATE_ZIG_LIB)
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR ${ROLLGATE_MACOS_CPU})
set(CMAKE_OSX_SYSROOT "" CACHE STRING "")
set(CMAKE_INSTALL_NAME_TOOL true) # nothing is installed
foreach(language C CXX)
  set(CMAKE_${language}_COMPILER_TARGET ${ROLLGATE_MACOS_CPU}-apple-macos11)
endforeach()
set(CMAKE_C_COMPILER clang) # for GoogleTest
set(CMAKE_CXX_COMPILER clang++)
set(CMAKE_AR llvm-ar CACHE STRING "")
set(CMAKE_RANLIB llvm-ranlib CACHE STRING "")

string(REPLACE arm64 aarch64 cpu ${ROLLGATE_MACOS_CPU})
set(system "-nostdlibinc -Wno-unused-command-line-argument")
foreach(folder ${cpu}-macos.11-none any-macos.11-any any-macos-any)
  string(APPEND system " -isystem ${ROLLGATE_ZIG_LIB}/libc/include/${folder}")
endforeach()
set(CMAKE_C_FLAGS_INIT "${system}")
# The macros are what the build of libc++ would have set.
string(JOIN " " CMAKE_CXX_FLAGS_INIT -nostdinc++ -isystem "${ROLLGATE_ZIG_LIB}/libcxx/include"
  -isystem "${ROLLGATE_ZIG_LIB}/libcxxabi/include" "${system}" -D_LIBCPP_ABI_VERSION=1
  -D_LIBCPP_ABI_NAMESPACE=__1 -D_LIBCPP_HAS_NO_VENDOR_AVAILABILITY_ANNOTATIONS)
foreach(kind EXE MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT
    "-nostdlib -fuse-ld=lld -mlinker-version=705 -Wl,-undefined,dynamic_lookup")
endforeach()
