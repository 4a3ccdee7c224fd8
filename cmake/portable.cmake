# rollgate_make_portable(TARGET): makes an addon that runs on many systems, and exports only the
# symbols that Node needs. scripts/prebuild.mjs checks the result.
function(rollgate_make_portable target)
  if(WIN32)
    include(windows)
    rollgate_find_node(${target})
    return()
  endif()
  if(APPLE)
    # Node's symbols are resolved when the addon is loaded.
    target_link_options(${target} PRIVATE -undefined dynamic_lookup
      "-Wl,-exported_symbol,_napi_register_module_v1"
      "-Wl,-exported_symbol,_node_api_module_get_api_version_v1")
    return()
  endif()

  set(map "${CMAKE_SOURCE_DIR}/cmake/exports.map")
  target_link_options(${target} PRIVATE "-Wl,--exclude-libs,ALL" "-Wl,--version-script=${map}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${map}")

  # libstdc++ is linked statically if there is an archive. libgcc is not: its newer archives need
  # glibc 2.35, and Node itself needs libgcc_s. Builds for tests are linked as usual.
  if(ROLLGATE_SANITIZE OR ROLLGATE_COVERAGE)
    return()
  endif()
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static-libstdc++)
  check_cxx_source_compiles("#include <string>
    int main(int count, char** words) { return std::string(words[count - 1]).size() > 9; }"
    ROLLGATE_STATIC_LIBSTDCXX)
  if(ROLLGATE_STATIC_LIBSTDCXX)
    # Unused functions are removed, because some need a glibc as new as the archive.
    target_link_options(${target} PRIVATE -static-libstdc++ -Wl,--gc-sections)
  endif()
endfunction()
