# rollgate_layer(NAME USES...): the library rollgate_NAME of src/NAME, linked to the layers it uses.
function(rollgate_layer name)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.cc")
  if(sources)
    add_library(rollgate_${name} STATIC ${sources})
    set_target_properties(rollgate_${name} PROPERTIES INTERPROCEDURAL_OPTIMIZATION "${ROLLGATE_LTO}")
    target_link_libraries(rollgate_${name} PUBLIC rollgate_options ${ARGN})
  else() # headers only
    add_library(rollgate_${name} INTERFACE)
    target_link_libraries(rollgate_${name} INTERFACE rollgate_options ${ARGN})
  endif()
endfunction()
