# The target rollgate: rollgate.node from src/binding and every layer below it.
file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/binding/*.cc")
if(NOT ROLLGATE_REDIS)
  list(FILTER sources EXCLUDE REGEX "/redis_")
endif()
if(NOT ROLLGATE_SHARED)
  list(FILTER sources EXCLUDE REGEX "/shared_")
endif()
if(NOT sources)
  message(STATUS "rollgate.node is not built: src/binding has no sources")
  return()
endif()
if(NOT EXISTS "${NODE_INCLUDE_DIR}/node_api.h")
  message(FATAL_ERROR "NODE_INCLUDE_DIR (${NODE_INCLUDE_DIR}) has no node_api.h; scripts/build.mjs finds it")
endif()
if(WIN32)
  # An addon there imports node.exe by name and needs an import library and a delay-load hook
  # (node-api-headers has the .def file), which nobody has tried yet.
  message(FATAL_ERROR "rollgate.node cannot be built on Windows yet; -DROLLGATE_ADDON=OFF builds the rest")
endif()

add_library(rollgate MODULE ${sources})
add_dependencies(addon rollgate)
set_target_properties(rollgate PROPERTIES
  PREFIX "" SUFFIX ".node"
  LIBRARY_OUTPUT_DIRECTORY "${ROLLGATE_ADDON_OUTPUT_DIR}"
  INTERPROCEDURAL_OPTIMIZATION "${ROLLGATE_LTO}")
target_include_directories(rollgate SYSTEM PRIVATE "${NODE_INCLUDE_DIR}")
target_compile_definitions(rollgate PRIVATE
  NAPI_VERSION=8 NODE_GYP_MODULE_NAME=rollgate)
target_link_libraries(rollgate PRIVATE rollgate_memory)
if(ROLLGATE_SHARED)
  target_link_libraries(rollgate PRIVATE rollgate_shared)
  target_compile_definitions(rollgate PRIVATE ROLLGATE_HAS_SHARED)
endif()
if(ROLLGATE_REDIS)
  target_link_libraries(rollgate PRIVATE rollgate_redis)
  target_include_directories(rollgate PRIVATE "${CMAKE_BINARY_DIR}/generated")
  target_compile_definitions(rollgate PRIVATE ROLLGATE_HAS_REDIS)
  if(NOT APPLE AND NOT WIN32) # What hiredis exports stays inside, beside others' hiredis.
    target_link_options(rollgate PRIVATE -Wl,--exclude-libs,ALL)
  endif()
endif()
if(APPLE) # Node's own symbols are found when the addon is loaded.
  target_link_options(rollgate PRIVATE -undefined dynamic_lookup)
endif()
