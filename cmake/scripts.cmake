# rollgate_embed_scripts(): redis/scripts.h, with the text and SHA-1 of each algorithm's Lua script,
# made anew when a script changes.

# A file that begins so is no whole script: it stands in the frame. lib/redis/script.js does the same.
set(ROLLGATE_IN_FRAME "-- In frame.lua:")
set(ROLLGATE_PLACE_IN_FRAME "-- ALGORITHM\n")

function(rollgate_embed_scripts)
  set(folder "${CMAKE_SOURCE_DIR}/src/redis/scripts")
  set(frame_path "${folder}/frame.lua")
  file(READ "${frame_path}" frame)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${frame_path}")
  file(GLOB paths CONFIGURE_DEPENDS "${folder}/*.lua")
  list(REMOVE_ITEM paths "${frame_path}")
  set(entries "")
  foreach(path IN LISTS paths)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    get_filename_component(name "${path}" NAME_WE)
    string(REPLACE "_" "-" algorithm "${name}")
    file(READ "${path}" text)
    string(FIND "${text}" "${ROLLGATE_IN_FRAME}" found)
    if(found EQUAL 0)
      string(REPLACE "${ROLLGATE_PLACE_IN_FRAME}" "${text}" text "${frame}")
    endif()
    string(SHA1 sha1 "${text}")
    string(APPEND entries "    {\"${algorithm}\", {R\"lua(${text})lua\", \"${sha1}\"}},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/redis/scripts.h" CONTENT [=[
// Made from the scripts in src/redis/scripts; not to be edited.
#pragma once

#include <string_view>

#include "redis/request.h"

namespace rollgate::redis {

struct ScriptOfAlgorithm {
  std::string_view algorithm;
  Script script;
};

inline constexpr ScriptOfAlgorithm kScripts[] = {
@entries@};

}  // namespace rollgate::redis
]=] @ONLY)
endfunction()
