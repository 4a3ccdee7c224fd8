# rollgate_embed_scripts(): redis/scripts.h, with the text and SHA-1 of each algorithm's Lua script,
# made anew when a script changes.

# rollgate_put_in_frame(TEXT FRAME): a file that is no whole script but the parts of one, in their
# places in the frame. lib/redis/script.js does the same.
function(rollgate_put_in_frame variable frame)
  set(rest "${${variable}}")
  set(place FIRST)
  while(place)
    # A part ends where the next one begins, which names its place.
    set(part "${rest}")
    set(next_place "")
    string(REGEX MATCH "\n-- PART: ([^\n]*)\n" border "${rest}")
    if(border)
      set(next_place "${CMAKE_MATCH_1}")
      string(FIND "${rest}" "${border}" end)
      string(LENGTH "${border}" length)
      math(EXPR next "${end} + ${length}")
      math(EXPR end "${end} + 1")
      string(SUBSTRING "${rest}" 0 ${end} part)
      string(SUBSTRING "${rest}" ${next} -1 rest)
    endif()
    string(REGEX REPLACE "[ ]*-- PLACE: ${place}\n" "@part@" frame "${frame}")
    string(REPLACE "@part@" "${part}" frame "${frame}")
    set(place "${next_place}")
  endwhile()
  set(${variable} "${frame}" PARENT_SCOPE)
endfunction()

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
    string(FIND "${text}" "-- In frame.lua:" found)
    if(found EQUAL 0)
      rollgate_put_in_frame(text "${frame}")
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
