# One GoogleTest executable per layer: test/<layer>/*.cc becomes <layer>_test.
find_package(Threads REQUIRED)
find_package(GTest CONFIG QUIET)
if(NOT GTest_FOUND)
  message(STATUS "GoogleTest is not installed: fetching its sources")
  include(FetchContent)
  set(BUILD_GMOCK OFF CACHE BOOL "" FORCE)
  set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
  set(gtest_force_shared_crt OFF CACHE BOOL "" FORCE)
  FetchContent_Declare(googletest
    URL https://github.com/google/googletest/releases/download/v1.17.0/googletest-1.17.0.tar.gz
    URL_HASH SHA256=65fab701d9829d38cb77c14acdc431d2108bfdbf8979e40eb8ae567edf10b27c)
  FetchContent_MakeAvailable(googletest)
endif()

include(GoogleTest)
enable_testing()

# The model takes many millions of steps in one thread, so it is optimised, and never sanitized.
set(model "/test/shared/(explorer.*|.*model.*)[.]cc$")

function(rollgate_test_executable name layer)
  add_executable(${name} EXCLUDE_FROM_ALL ${ARGN})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/test")
  target_link_libraries(${name} PRIVATE rollgate_${layer} GTest::gtest_main Threads::Threads)
endfunction()

function(rollgate_test layer)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/test/${layer}/*.cc")
  if(ROLLGATE_SANITIZE)
    list(FILTER sources EXCLUDE REGEX "${model}")
  endif()
  if(NOT sources)
    return()
  endif()
  set(models ${sources})
  list(FILTER models INCLUDE REGEX "${model}")
  set_source_files_properties(${models} PROPERTIES COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU,Clang>:-O2>")
  rollgate_test_executable(${layer}_test ${layer} ${sources})
  add_dependencies(tests ${layer}_test)
  # Listed when ctest runs: a sanitized executable need not start during the build.
  gtest_discover_tests(${layer}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${layer}.")
endfunction()

rollgate_test(core)
rollgate_test(memory)
if(ROLLGATE_SHARED)
  rollgate_test(shared)
  # The races alone, to be built as users get the code, without all other tests.
  rollgate_test_executable(race_test shared test/shared/race_test.cc)
endif()
if(ROLLGATE_REDIS)
  rollgate_test(redis)
endif()
