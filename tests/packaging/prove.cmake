# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs the consumer one WAY, in SCRATCH: add_subdirectory, find_package or pkg_config.

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}")
set(consumer "${CMAKE_CURRENT_LIST_DIR}/consumer")

if(NOT CCACHE) # not found
  set(CCACHE "")
endif()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

# Runs what was built: without a file, and with one that the consumer's own policy has no room for.
function(run_consumer program)
  run("${program}" no-such.gguf)
  if(NOT said MATCHES "refused: no-such.gguf: no such file")
    message(FATAL_ERROR "the consumer said\n${said}")
  endif()
  if(EXISTS "${SOURCE}/examples/models/fairy.gguf")
    run("${program}" "${SOURCE}/examples/models/fairy.gguf")
    if(NOT said MATCHES "refused: .* do not fit")
      message(FATAL_ERROR "the consumer's policy was not asked:\n${said}")
    endif()
  endif()
endfunction()

# Configures, builds and runs. The consumer of a library must not be made to download anything.
function(build_consumer folder)
  run("${CMAKE_COMMAND}" -S "${consumer}" -B "${folder}" -G Ninja -DCMAKE_BUILD_TYPE=Debug
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE}"
    -DFETCHCONTENT_FULLY_DISCONNECTED=ON ${ARGN})
  run("${CMAKE_COMMAND}" --build "${folder}")
  run_consumer("${folder}/consumer")
endfunction()

# Installs, then moves the folder: nothing in it may remember where it was built or installed.
function(install_and_move)
  run("${CMAKE_COMMAND}" --install "${BUILD}" --component devel --prefix "${SCRATCH}/first")
  file(RENAME "${SCRATCH}/first" "${SCRATCH}/moved")
  file(GLOB_RECURSE texts "${SCRATCH}/moved/share/*")
  foreach(text IN LISTS texts)
    file(READ "${text}" content)
    foreach(place "${SOURCE}" "${BUILD}" "${SCRATCH}")
      string(FIND "${content}" "${place}" found)
      if(NOT found EQUAL -1)
        message(FATAL_ERROR "${text} remembers ${place}")
      endif()
    endforeach()
  endforeach()
endfunction()

if(WAY STREQUAL add_subdirectory)
  build_consumer("${SCRATCH}/build" "-DMICA_FOLDER=${SOURCE}" "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}")
elseif(WAY STREQUAL find_package)
  install_and_move()
  build_consumer("${SCRATCH}/build" "-DCMAKE_PREFIX_PATH=${SCRATCH}/moved;${PREFIX_PATH}"
    "-DMICA_COMPONENTS=${COMPONENTS}")
  # The kernel units came along, and compile by the user's flags; one stands for all.
  file(GLOB unit "${SCRATCH}/moved/include/mica/kernel/highway/units/elementwise.cpp")
  run("${CMAKE_COMMAND}" --build "${SCRATCH}/build" --target "CMakeFiles/consumer_kernels.dir${unit}.o")
  # A component that nobody has is refused with its name.
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${consumer}" -B "${SCRATCH}/refused" -G Ninja
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${SCRATCH}/moved;${PREFIX_PATH}"
    -DMICA_COMPONENTS=telepathy RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE said)
  if(result EQUAL 0 OR NOT said MATCHES "mica::telepathy")
    message(FATAL_ERROR "an unknown component was not refused by name:\n${said}")
  endif()
elseif(WAY STREQUAL pkg_config)
  find_program(pkg_config NAMES pkg-config pkgconf)
  if(NOT pkg_config)
    message("skipped: packaging_pkg_config (there is no pkg-config)")
    return()
  endif()
  install_and_move()
  set(ENV{PKG_CONFIG_PATH} "${SCRATCH}/moved/share/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  foreach(prefix IN LISTS PREFIX_PATH)
    file(GLOB folders "${prefix}/lib/pkgconfig" "${prefix}/lib/*/pkgconfig")
    list(JOIN folders ":" folders)
    set(ENV{PKG_CONFIG_PATH} "${folders}:$ENV{PKG_CONFIG_PATH}")
  endforeach()
  execute_process(COMMAND "${pkg_config}" --cflags --libs mica OUTPUT_VARIABLE flags ERROR_VARIABLE said
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message("skipped: packaging_pkg_config (${said})")
    return()
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run("${COMPILER}" "${consumer}/main.cpp" -o "${SCRATCH}/consumer" ${flags})
  run_consumer("${SCRATCH}/consumer")
endif()
