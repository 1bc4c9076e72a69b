# SPDX-License-Identifier: Apache-2.0
#
# Files of a target that are compiled as one unit share the headers and the templates that they instantiate: it
# takes less processor time to build everything once, and more to build again what has changed.
#
#   mica_compile_together(TARGET [MAX])   MICA_FILES_PER_UNIT files as one unit, or MAX where that is fewer

function(mica_compile_together target)
  set(files ${MICA_FILES_PER_UNIT})
  if(ARGC GREATER 1 AND files GREATER ARGV1)
    set(files ${ARGV1})
  endif()
  if(files GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  endif()
endfunction()
