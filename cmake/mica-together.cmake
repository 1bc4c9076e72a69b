# SPDX-License-Identifier: Apache-2.0
#
# Files of a target that are compiled as one unit share the headers and the templates that they instantiate: it
# takes less processor time to build everything once, and more to build again what has changed.

function(mica_compile_together target)
  if(MICA_FILES_PER_UNIT GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${MICA_FILES_PER_UNIT})
  endif()
endfunction()
