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
if(NOT EXISTS "${NODE_ADDON_API_DIR}/napi.h")
  message(FATAL_ERROR "NODE_ADDON_API_DIR (${NODE_ADDON_API_DIR}) has no napi.h; scripts/build.mjs finds it")
endif()
add_library(rollgate MODULE ${sources})
add_dependencies(addon rollgate)
set_target_properties(rollgate PROPERTIES
  PREFIX "" SUFFIX ".node"
  LIBRARY_OUTPUT_DIRECTORY "$<1:${ROLLGATE_ADDON_OUTPUT_DIR}>" # no folder for each configuration
  INTERPROCEDURAL_OPTIMIZATION "${ROLLGATE_LTO}")
if(ROLLGATE_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC's link-time optimizer fails if the folder of the addon has a space in its name.
  target_link_options(rollgate PRIVATE "SHELL:-dumpdir ./")
endif()
target_include_directories(rollgate SYSTEM PRIVATE "${NODE_INCLUDE_DIR}" "${NODE_ADDON_API_DIR}")
# While a worker thread is being terminated, no exception can be thrown in it. It is swallowed, because it
# would end the process.
target_compile_definitions(rollgate PRIVATE NAPI_VERSION=8 NODE_GYP_MODULE_NAME=rollgate
  NAPI_CPP_EXCEPTIONS NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS)
target_link_libraries(rollgate PRIVATE rollgate_memory)
if(ROLLGATE_SHARED)
  target_link_libraries(rollgate PRIVATE rollgate_shared)
  target_compile_definitions(rollgate PRIVATE ROLLGATE_HAS_SHARED)
endif()
if(ROLLGATE_REDIS)
  target_link_libraries(rollgate PRIVATE rollgate_redis)
  target_compile_definitions(rollgate PRIVATE ROLLGATE_HAS_REDIS)
endif()
include(portable)
rollgate_make_portable(rollgate)
