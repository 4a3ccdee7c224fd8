# The target core_bench: bench/core/*.cc with Google Benchmark, without Node.
find_package(Threads REQUIRED)
find_package(benchmark CONFIG QUIET)
if(NOT benchmark_FOUND)
  message(STATUS "Google Benchmark is not installed: fetching its sources")
  include(FetchContent)
  set(BENCHMARK_ENABLE_TESTING OFF CACHE BOOL "" FORCE)
  set(BENCHMARK_ENABLE_INSTALL OFF CACHE BOOL "" FORCE)
  FetchContent_Declare(benchmark
    URL https://github.com/google/benchmark/archive/refs/tags/v1.9.4.tar.gz
    URL_HASH SHA256=b334658edd35efcf06a99d9be21e4e93e092bd5f95074c1673d5c8705d95c104)
  FetchContent_MakeAvailable(benchmark)
endif()

file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/core/*.cc")
if(sources)
  add_executable(core_bench ${sources})
  add_dependencies(benchmarks core_bench)
  set_target_properties(core_bench PROPERTIES INTERPROCEDURAL_OPTIMIZATION "${ROLLGATE_LTO}")
  target_link_libraries(core_bench PRIVATE
    rollgate_memory benchmark::benchmark_main Threads::Threads)
endif()
