# rollgate_embed_script(NAME): redis/scripts.h, with a Lua script's text and SHA-1, made anew when the
# script changes.
function(rollgate_embed_script name constant)
  set(script "${CMAKE_SOURCE_DIR}/src/redis/scripts/${name}.lua")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${script}")
  file(READ "${script}" text)
  file(SHA1 "${script}" sha1)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/redis/scripts.h" CONTENT [=[
// Made from the scripts in src/redis/scripts; not to be edited.
#pragma once

#include <string_view>

namespace rollgate::redis {

inline constexpr std::string_view k@constant@Sha1 = "@sha1@";
inline constexpr std::string_view k@constant@Text = R"lua(@text@)lua";

}  // namespace rollgate::redis
]=] @ONLY)
endfunction()
