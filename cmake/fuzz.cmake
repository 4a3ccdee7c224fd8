# One libFuzzer executable for each test/fuzz/<name>_fuzz.cc; needs clang.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "The fuzzers need clang: set CMAKE_CXX_COMPILER to clang++")
endif()

file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/test/fuzz/*_fuzz.cc")
foreach(source ${sources})
  get_filename_component(name "${source}" NAME_WE)
  add_executable(${name} "${source}")
  add_dependencies(fuzzers ${name})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/test")
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE rollgate_memory)
endforeach()
# The layers report their branches to the fuzzer as well.
foreach(layer core memory)
  target_compile_options(rollgate_${layer} PRIVATE -fsanitize=fuzzer-no-link)
endforeach()
