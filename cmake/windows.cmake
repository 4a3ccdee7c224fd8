# rollgate_find_node(TARGET): on Windows, links an addon to Node. The linker reads the names of functions
# from the package node-api-headers; they are resolved in the running program, whatever
# its name. Not yet run.
function(rollgate_find_node target)
  set(list "${NODE_INCLUDE_DIR}/../def/node_api.def")
  if(NOT MSVC OR NOT EXISTS "${list}")
    message(FATAL_ERROR "On Windows rollgate.node takes Visual Studio and the package node-api-headers "
      "(NODE_INCLUDE_DIR is ${NODE_INCLUDE_DIR})")
  endif()
  set(library "${CMAKE_CURRENT_BINARY_DIR}/node_api.lib")
  add_custom_command(OUTPUT "${library}" DEPENDS "${list}"
    COMMAND "${CMAKE_AR}" /nologo "/def:${list}" "/out:${library}"
      "/machine:${CMAKE_CXX_COMPILER_ARCHITECTURE_ID}"
    VERBATIM)
  add_custom_target(${target}_node_api DEPENDS "${library}")
  add_dependencies(${target} ${target}_node_api)
  target_sources(${target} PRIVATE "${CMAKE_SOURCE_DIR}/cmake/windows_node.cc")
  target_link_libraries(${target} PRIVATE "${library}" delayimp)
  target_link_options(${target} PRIVATE /DELAYLOAD:NODE.EXE)
endfunction()
