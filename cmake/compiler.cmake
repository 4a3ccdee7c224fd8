# The language, warnings, optimisation and sanitizers of everything that is built.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Static, as in Node itself, so that no library of Visual Studio is needed.
set(CMAKE_MSVC_RUNTIME_LIBRARY "MultiThreaded$<$<CONFIG:Debug>:Debug>")

# An interface, so that these warnings do not apply to fetched sources.
add_library(rollgate_options INTERFACE)
target_include_directories(rollgate_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
if(MSVC)
  target_compile_options(rollgate_options INTERFACE /W4 /utf-8)
else()
  target_compile_options(rollgate_options INTERFACE -Wall -Wextra -Wpedantic $<$<CONFIG:Release>:-O3>)
  target_compile_definitions(rollgate_options INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
endif()

if(ROLLGATE_SANITIZE)
  # Without recovery, a finding fails the test. With -O1, the address sanitizer's tests would take
  # more than twice as long to compile.
  set(sanitize "-fsanitize=${ROLLGATE_SANITIZE}")
  if(ROLLGATE_SANITIZE STREQUAL "thread" OR ROLLGATE_FUZZ)
    add_compile_options(-O1)
  endif()
  add_compile_options(${sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(${sanitize})
elseif(ROLLGATE_COVERAGE)
  add_compile_options(--coverage -O1) # without -O1, the tests take too long
  add_link_options(--coverage)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  include(CheckIPOSupported)
  check_ipo_supported(RESULT ROLLGATE_LTO OUTPUT ignored LANGUAGES CXX)
endif()
