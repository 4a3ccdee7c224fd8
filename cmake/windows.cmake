# rollgate_find_node(TARGET): on Windows, links an addon to Node. The linker reads the names of functions
# from the package node-api-headers; they are resolved in the running program, whatever its name.
function(rollgate_find_node target)
  set(list "${NODE_INCLUDE_DIR}/../def/node_api.def")
  if(NOT EXISTS "${list}")
    message(FATAL_ERROR "On Windows rollgate.node takes the package node-api-headers "
      "(NODE_INCLUDE_DIR is ${NODE_INCLUDE_DIR})")
  endif()
  set(library "${CMAKE_CURRENT_BINARY_DIR}/node_api.lib")
  if(MSVC)
    set(command "${CMAKE_AR}" /nologo "/def:${list}" "/out:${library}"
      "/machine:${CMAKE_CXX_COMPILER_ARCHITECTURE_ID}")
    target_link_options(${target} PRIVATE /DELAYLOAD:NODE.EXE)
  else()
    set(command "${CMAKE_DLLTOOL}" --input-def "${list}" --output-delaylib "${library}")
  endif()
  add_custom_command(OUTPUT "${library}" DEPENDS "${list}" COMMAND ${command} VERBATIM)
  add_custom_target(${target}_node_api DEPENDS "${library}")
  add_dependencies(${target} ${target}_node_api)
  target_sources(${target} PRIVATE "${CMAKE_SOURCE_DIR}/cmake/windows_node.cc")
  target_link_libraries(${target} PRIVATE "${library}" delayimp)
endfunction()
