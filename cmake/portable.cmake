# rollgate_make_portable(TARGET): an addon that needs little of the machine it runs on, and shows
# it nothing but what Node looks for. scripts/prebuild.mjs checks what comes out.
function(rollgate_make_portable target)
  if(WIN32)
    include(windows)
    rollgate_find_node(${target})
    return()
  endif()
  if(APPLE)
    # Node's own symbols are found when the addon is loaded.
    target_link_options(${target} PRIVATE -undefined dynamic_lookup
      "-Wl,-exported_symbol,_napi_register_module_v1"
      "-Wl,-exported_symbol,_node_api_module_get_api_version_v1")
    return()
  endif()

  set(map "${CMAKE_SOURCE_DIR}/cmake/exports.map")
  target_link_options(${target} PRIVATE "-Wl,--exclude-libs,ALL" "-Wl,--version-script=${map}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${map}")

  # libstdc++ is linked in where there is an archive of it. libgcc is not: its newer archives need
  # glibc 2.35, and Node itself comes with libgcc_s. Builds that only tests run are left alone.
  if(ROLLGATE_SANITIZE OR ROLLGATE_COVERAGE)
    return()
  endif()
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static-libstdc++)
  check_cxx_source_compiles("#include <string>
    int main(int count, char** words) { return std::string(words[count - 1]).size() > 9; }"
    ROLLGATE_STATIC_LIBSTDCXX)
  if(ROLLGATE_STATIC_LIBSTDCXX)
    # What nobody calls is left out, or it would still ask for a glibc as new as the archive.
    target_link_options(${target} PRIVATE -static-libstdc++ -Wl,--gc-sections)
  endif()
endfunction()
