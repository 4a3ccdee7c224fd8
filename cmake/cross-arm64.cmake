# Cross-builds for Linux on arm64 with Debian's crossbuild-essential-arm64; scripts/lib/cross uses it.
# The libraries that these packages do not have are in CMAKE_FIND_ROOT_PATH.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc) # for GoogleTest
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Only programs of the building machine are used.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
if(CMAKE_FIND_ROOT_PATH) # CMake reads this file again, without it, to try the compiler
  set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_FIND_ROOT_PATH}")
  set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_FIND_ROOT_PATH}/usr/lib/aarch64-linux-gnu/pkgconfig")
endif()
