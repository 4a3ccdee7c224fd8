# Finds hiredis 0.14 or newer, which the native Redis client needs: ROLLGATE_REDIS, and the target
# rollgate_hiredis. Without it the addon is built without that client.
set(ROLLGATE_REDIS OFF)
if(ROLLGATE_HIREDIS STREQUAL "OFF")
  return()
endif()

find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(HIREDIS QUIET hiredis>=0.14)
endif()
if(HIREDIS_FOUND)
  # An archive is preferred, so that the addon does not need a library. The folder of the headers is
  # searched first, because there may be a second hiredis; some pkg-config files do not have the folder.
  pkg_get_variable(HIREDIS_FOLDER hiredis libdir)
  find_library(ROLLGATE_HIREDIS_ARCHIVE NAMES libhiredis.a
    PATHS "${HIREDIS_FOLDER}" NO_DEFAULT_PATH)
  find_library(ROLLGATE_HIREDIS_ARCHIVE NAMES libhiredis.a)
  find_library(ROLLGATE_HIREDIS_SHARED NAMES hiredis PATHS "${HIREDIS_FOLDER}" NO_DEFAULT_PATH)
  find_library(ROLLGATE_HIREDIS_SHARED NAMES hiredis)
endif()
set(library "${ROLLGATE_HIREDIS_ARCHIVE}")
if(NOT library)
  set(library "${ROLLGATE_HIREDIS_SHARED}")
endif()

set(missing "")
if(NOT PKG_CONFIG_FOUND)
  set(missing "pkg-config was not found")
elseif(NOT HIREDIS_FOUND OR NOT library)
  set(missing "hiredis 0.14 or newer was not found")
endif()

if(missing)
  if(ROLLGATE_HIREDIS STREQUAL "ON")
    message(FATAL_ERROR "ROLLGATE_HIREDIS is ON, but ${missing}")
  endif()
  set(report "none: ${missing}")
else()
  set(ROLLGATE_REDIS ON)
  add_library(rollgate_hiredis INTERFACE)
  foreach(folder IN LISTS HIREDIS_INCLUDE_DIRS) # the headers are included as <hiredis/...>
    target_include_directories(rollgate_hiredis SYSTEM INTERFACE "${folder}/..")
  endforeach()
  target_link_libraries(rollgate_hiredis INTERFACE "${library}")
  set(report "hiredis ${HIREDIS_VERSION}")
endif()
message(STATUS "The native Redis client: ${report} (${library})")
if(ROLLGATE_ADDON)
  # Read by scripts/build.mjs.
  file(WRITE "${CMAKE_BINARY_DIR}/native-redis.txt" "${report}")
endif()
