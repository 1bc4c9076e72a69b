# SPDX-License-Identifier: Apache-2.0
#
# Takes the consumer through one WAY of getting mica, in SCRATCH: add_subdirectory, subproject, fetch_content, cpm,
# find_package, components, kernels, vcpkg, cps or pkg_config.

cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}")
set(consumer "${CMAKE_CURRENT_LIST_DIR}/consumer")

if(NOT CCACHE) # not found
  set(CCACHE "")
endif()
# Lists do not pass through the functions below as arguments: folders go by the environment, parts with
# spaces.
list(JOIN PREFIX_PATH ":" prefixes)
set(ENV{CMAKE_PREFIX_PATH} "${prefixes}")
list(JOIN COMPONENTS " " parts)

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
    if(NOT said MATCHES "refused: activations: .* bytes for steps of .* were refused")
      message(FATAL_ERROR "the consumer's policy was not asked:\n${said}")
    endif()
  endif()
endfunction()

# The consumer of a library must not be made to download anything.
set(configure_project "${CMAKE_COMMAND}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
  "-DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE}" -DCMAKE_BUILD_TYPE=Debug -DFETCHCONTENT_FULLY_DISCONNECTED=ON)
set(configure ${configure_project} -S "${consumer}")

function(configure_consumer folder)
  run(${configure} -G Ninja -B "${folder}" ${ARGN})
endfunction()

function(build_consumer folder)
  configure_consumer("${folder}" ${ARGN})
  # Without this option the compiler may fuse a product and a sum of the headers, and bits are others.
  command_of(command "${folder}" consumer main)
  if(NOT command MATCHES " -ffp-contract=off ")
    message(FATAL_ERROR "the consumer is compiled without -ffp-contract=off:\n${command}")
  endif()
  run("${CMAKE_COMMAND}" --build "${folder}" --target consumer)
  run_consumer("${folder}/consumer")
endfunction()

# The consumer does not configure, and the error matches.
function(expect_refusal folder pattern)
  execute_process(COMMAND ${configure} -G Ninja -B "${folder}" ${ARGN} RESULT_VARIABLE result OUTPUT_QUIET
    ERROR_VARIABLE said)
  string(REGEX REPLACE "[ \n]+" " " words "${said}") # CMake wraps its lines
  if(result EQUAL 0 OR NOT words MATCHES "${pattern}")
    message(FATAL_ERROR "the consumer was to be refused with\n  ${pattern}\nand CMake said\n${said}")
  endif()
endfunction()

# A target does not compile, and the compiler has one error, which matches.
function(expect_one_error folder target pattern)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${folder}" --target ${target} RESULT_VARIABLE result
    OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(REPLACE ";" "" words "${said}") # which would divide the list
  string(REGEX MATCHALL "error: [^\n]*" errors "${words}")
  list(LENGTH errors count)
  if(result EQUAL 0 OR NOT count EQUAL 1 OR NOT errors MATCHES "${pattern}")
    message(FATAL_ERROR "${target} was to be refused with one error\n  ${pattern}\nand the compiler said\n${said}")
  endif()
endfunction()

# A project outside of mica's tree with a format, a block and a family of its own, by the package that is found.
function(prove_own_parts)
  set(project "${SCRATCH}/own_parts")
  file(COPY "${CMAKE_CURRENT_LIST_DIR}/own_parts" DESTINATION "${SCRATCH}")
  file(COPY "${SOURCE}/examples/04_custom_format/sym3.hpp" "${SOURCE}/examples/09_own_block/moving_average.hpp"
    "${SOURCE}/tests/fail/policy_named_twice.cpp" "${SOURCE}/tests/fail/kv_misspelt_choice.cpp"
    DESTINATION "${project}")
  run(${configure_project} -S "${project}" -G Ninja -B "${project}/build")
  run("${CMAKE_COMMAND}" --build "${project}/build" --target own_parts)
  if(EXISTS "${SOURCE}/examples/models/fairy.gguf")
    run("${project}/build/own_parts" "${SOURCE}/examples/models/fairy.gguf")
    if(NOT said MATCHES "^Once upon a time there lived a king who had three sons\\.")
      message(FATAL_ERROR "the model with parts of its own said\n${said}")
    endif()
  endif()
  expect_one_error("${project}/build" policy_named_twice "mica::Transformer: an axis is named twice")
  expect_one_error("${project}/build" kv_misspelt_choice "pagd.*mica::kv::Choice")
endfunction()

# Sets out to the command that compiles a file for one of the consumer's targets, in a configuration if one is
# given.
function(command_of out folder target file)
  set(pattern " CMakeFiles/${target}\\.dir/.*/${file}\\.cpp\"")
  if(ARGC GREATER 4)
    set(pattern "CMAKE_INTDIR=[^ ]*${ARGV4}.*${pattern}")
  endif()
  file(STRINGS "${folder}/compile_commands.json" commands REGEX "\"command\": .*${pattern}")
  list(LENGTH commands count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${count} commands compile ${file}.cpp for ${target} in ${folder}")
  endif()
  set(${out} "${commands}" PARENT_SCOPE)
endfunction()

# The compiler gets this level of optimisation, -O0 where it is told none.
function(expect_level level folder target file)
  command_of(command "${folder}" ${target} ${file} ${ARGN})
  string(REGEX MATCHALL " -O[^ ]*" levels " -O0 ${command}")
  list(GET levels -1 last)
  if(NOT last STREQUAL " ${level}")
    message(FATAL_ERROR "${file}.cpp is compiled with${last}, expected ${level}:\n${command}")
  endif()
endfunction()

# Installs the headers and other components, then moves the folder, where it is found: nothing in it may remember
# where it was built or installed.
function(install_and_move)
  foreach(component devel ${ARGN})
    run("${CMAKE_COMMAND}" --install "${BUILD}" --component ${component} --prefix "${SCRATCH}/first")
  endforeach()
  file(RENAME "${SCRATCH}/first" "${SCRATCH}/moved")
  set(ENV{CMAKE_PREFIX_PATH} "${SCRATCH}/moved:$ENV{CMAKE_PREFIX_PATH}")
  file(GLOB_RECURSE texts "${SCRATCH}/moved/share/*" "${SCRATCH}/moved/lib/*.cmake" "${SCRATCH}/moved/lib/*.pc")
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

# The tree as a release has it, in an archive whose sum the consumer names.
function(make_archive)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E tar czf "${SCRATCH}/mica.tar.gz" CMakeLists.txt LICENSE cmake include
    mica.pc.in mica-kernels.pc.in WORKING_DIRECTORY "${SOURCE}" COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 "${SCRATCH}/mica.tar.gz" sum)
  set(from_archive "-DMICA_ARCHIVE=${SCRATCH}/mica.tar.gz" -DMICA_SHA256=${sum} -DFETCHCONTENT_FULLY_DISCONNECTED=OFF
    PARENT_SCOPE)
  # A download of anything else would fail.
  foreach(protocol http https)
    set(ENV{${protocol}_proxy} "http://127.0.0.1:9")
  endforeach()
  set(ENV{CCACHE_BASEDIR} "${SCRATCH}")
endfunction()

# The consumer's unit is compiled with the headers of this folder.
function(expect_headers folder headers)
  command_of(command "${folder}" consumer main)
  string(FIND "${command}" "${headers} " found)
  if(found EQUAL -1)
    message(FATAL_ERROR "the consumer is not compiled with ${headers}:\n${command}")
  endif()
endfunction()

# The project in compiled/, which has one unit and the kernels of the installed library.
set(configure_compiled ${configure_project} -S "${CMAKE_CURRENT_LIST_DIR}/compiled" -G Ninja)

# What it prints, by a program that was built.
function(run_compiled program)
  if(EXISTS "${SOURCE}/examples/models/fairy.gguf")
    run("${program}" "${SOURCE}/examples/models/fairy.gguf")
    if(NOT said MATCHES "^Once upon a time there lived a king who had [^\n]*\n[1-9][0-9]+ bytes\n$")
      message(FATAL_ERROR "the program with compiled kernels said\n${said}")
    endif()
  endif()
endfunction()

# A call of a kernel compiles with other headers or settings, and does not link, for want of this symbol.
function(expect_no_link folder symbol)
  run(${configure_compiled} -B "${folder}" -DUNIT=mixed.cpp ${ARGN})
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${folder}" RESULT_VARIABLE result OUTPUT_VARIABLE said
    ERROR_VARIABLE said)
  if(result EQUAL 0 OR NOT said MATCHES "undefined (reference|symbol)[^\n]*${symbol}")
    message(FATAL_ERROR "a call of ${symbol} was not to link, and the tools said\n${said}")
  endif()
endfunction()

if(WAY STREQUAL add_subdirectory)
  build_consumer("${SCRATCH}/build" "-DMICA_FOLDER=${SOURCE}")
  # Where no optimisation is asked for, kernels have it all the same, and the consumer's unit has none.
  expect_level(-O0 "${SCRATCH}/build" consumer main)
  expect_level(-O2 "${SCRATCH}/build" consumer_kernels elementwise)
  # Each configuration has its own; a level that the user chose stays.
  run(${configure} -G "Ninja Multi-Config" -B "${SCRATCH}/multi" "-DMICA_FOLDER=${SOURCE}"
    "-DCMAKE_CONFIGURATION_TYPES=Debug\\;Release\\;Small" -DCMAKE_CXX_FLAGS_SMALL=-Os)
  expect_level(-O2 "${SCRATCH}/multi" consumer_kernels elementwise Debug)
  expect_level(-O3 "${SCRATCH}/multi" consumer_kernels elementwise Release)
  expect_level(-Os "${SCRATCH}/multi" consumer_kernels elementwise Small)
elseif(WAY STREQUAL subproject)
  set(from "-DMICA_FOLDER=${SOURCE}" "-DHIGHWAY_HEADERS=${HIGHWAY_HEADERS}"
    -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON -DCMAKE_DISABLE_FIND_PACKAGE_highway=ON)
  expect_refusal("${SCRATCH}/none" "a target hwy or hwy::hwy before .* -DMICA_FETCH_DEPS=ON" ${from})
  # A target as FetchContent makes it of Highway.
  configure_consumer("${SCRATCH}/own" ${from} -DOWN_HIGHWAY=ON)
  command_of(own "${SCRATCH}/own" consumer_kernels elementwise)
  # Highway as it is downloaded on request, from a folder in place of the network; nothing else is asked for.
  configure_consumer("${SCRATCH}/fetched" ${from} -DMICA_FETCH_DEPS=ON
    "-DFETCHCONTENT_SOURCE_DIR_HWY=${CMAKE_CURRENT_LIST_DIR}/highway")
  command_of(fetched "${SCRATCH}/fetched" consumer_kernels elementwise)
  foreach(command IN ITEMS "${own}" "${fetched}")
    if(NOT command MATCHES " -DSTAND_IN_HIGHWAY ")
      message(FATAL_ERROR "compiled with another Highway than the consumer's:\n${command}")
    endif()
  endforeach()
elseif(WAY STREQUAL fetch_content)
  make_archive()
  build_consumer("${SCRATCH}/build" ${from_archive} "-DLINK=tools jinja")
  expect_headers("${SCRATCH}/build" "${SCRATCH}/build/_deps/mica-src/include")
  expect_level(-O2 "${SCRATCH}/build" consumer_kernels elementwise)
elseif(WAY STREQUAL cpm)
  # CPM itself, if MICA_CPM names its file; first a stand-in with the documented meaning of the words used here.
  make_archive()
  foreach(cpm IN ITEMS "${CMAKE_CURRENT_LIST_DIR}/cpm/CPM.cmake" "${CPM}")
    if(cpm)
      file(REMOVE_RECURSE "${SCRATCH}/build")
      build_consumer("${SCRATCH}/build" ${from_archive} "-DCPM=${cpm}" "-DLINK=tools jinja")
      expect_headers("${SCRATCH}/build" "${SCRATCH}/build/_deps/mica-src/include")
      expect_level(-O2 "${SCRATCH}/build" consumer_kernels elementwise)
    endif()
  endforeach()
elseif(WAY STREQUAL vcpkg)
  # By the port's own rules, then by its package alone.
  run("${CMAKE_COMMAND}" "-DSCRATCH=${SCRATCH}/vcpkg" "-DCOMPILER=${COMPILER}" -P
    "${CMAKE_CURRENT_LIST_DIR}/vcpkg.cmake")
  file(RENAME "${SCRATCH}/vcpkg/installed" "${SCRATCH}/moved")
  set(ENV{CMAKE_PREFIX_PATH} "${SCRATCH}/moved:$ENV{CMAKE_PREFIX_PATH}")
  build_consumer("${SCRATCH}/build" "-DMICA_COMPONENTS=text checksum" "-DLINK=text checksum tools jinja")
  expect_headers("${SCRATCH}/build" "${SCRATCH}/moved/include")
  expect_level(-O2 "${SCRATCH}/build" consumer_kernels elementwise)
  # A feature that was not asked for is not there, though its library is.
  expect_refusal("${SCRATCH}/refused" "mica::server: this installation was built without it"
    -DMICA_COMPONENTS=server)
elseif(WAY STREQUAL cps)
  execute_process(COMMAND "${NEWER_CMAKE}" --version OUTPUT_VARIABLE said ERROR_QUIET)
  if(NOT said MATCHES "cmake version ([0-9.]+)" OR CMAKE_MATCH_1 VERSION_LESS 4.3)
    message("skipped: packaging_cps (no CMake 4.3 or newer; MICA_NEWER_CMAKE names one)")
    return()
  endif()
  set(alone -DMICA_BUILD_PROGRAM=OFF -DMICA_BUILD_TESTS=OFF -DMICA_BUILD_EXAMPLES=OFF -DMICA_BUILD_BENCH=OFF)
  run("${NEWER_CMAKE}" -S "${SOURCE}" -B "${SCRATCH}/mica" -G Ninja "-DCMAKE_CXX_COMPILER=${COMPILER}" ${alone})
  file(COPY "${KERNELS}" DESTINATION "${SCRATCH}/mica") # in place of a build of minutes
  run("${NEWER_CMAKE}" --install "${SCRATCH}/mica" --prefix "${SCRATCH}/first")
  run("${NEWER_CMAKE}" --install "${SCRATCH}/mica" --component kernels --prefix "${SCRATCH}/first")
  file(RENAME "${SCRATCH}/first" "${SCRATCH}/moved")
  file(READ "${SCRATCH}/moved/share/mica/cps/mica.cps" text)
  foreach(word IN ITEMS "\"-ffp-contract=off\"" "\"hwy:hwy\"" "\"Apache-2.0\"")
    string(FIND "${text}" "${word}" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "mica.cps has no ${word}:\n${text}")
    endif()
  endforeach()
  # By the prefix alone CMake finds its own files, which have mica_add_kernels(); by share/ the others.
  list(TRANSFORM configure REPLACE "^${CMAKE_COMMAND}$" "${NEWER_CMAKE}")
  set(prefixes "$ENV{CMAKE_PREFIX_PATH}")
  set(ENV{CMAKE_PREFIX_PATH} "${SCRATCH}/moved:${prefixes}")
  configure_consumer("${SCRATCH}/config")
  file(STRINGS "${SCRATCH}/config/CMakeCache.txt" found REGEX "^mica_DIR:.*/share/cmake/mica$")
  if(NOT found)
    message(FATAL_ERROR "CMake prefers the CPS files to its own")
  endif()
  set(ENV{CMAKE_PREFIX_PATH} "${SCRATCH}/moved/share:${prefixes}")
  set(parts "")
  if(EXISTS "${SCRATCH}/moved/share/mica/cps/mica-eigen.cps")
    set(parts eigen)
  endif()
  # CMake 4.4 writes the compiler's flags into a CPS file and does not read them from there.
  build_consumer("${SCRATCH}/build" "-DMICA_COMPONENTS=${parts}" "-DLINK=${parts} tools jinja"
    -DCMAKE_CXX_FLAGS=-ffp-contract=off "-DKERNELS_FILE=${SCRATCH}/moved/share/cmake/mica/mica-kernels.cmake")
  file(STRINGS "${SCRATCH}/build/CMakeCache.txt" found REGEX "^mica_DIR:.*/share/mica/cps$")
  if(NOT found)
    message(FATAL_ERROR "the consumer did not take the CPS files")
  endif()
  expect_headers("${SCRATCH}/build" "${SCRATCH}/moved/include")
  list(TRANSFORM configure_compiled REPLACE "^${CMAKE_COMMAND}$" "${NEWER_CMAKE}")
  run(${configure_compiled} -B "${SCRATCH}/compiled" -DCMAKE_CXX_FLAGS=-ffp-contract=off)
  run("${CMAKE_COMMAND}" --build "${SCRATCH}/compiled")
  run_compiled("${SCRATCH}/compiled/compiled")
elseif(WAY STREQUAL find_package)
  install_and_move()
  build_consumer("${SCRATCH}/build" "-DMICA_COMPONENTS=${parts}" "-DLINK=${parts}")
  # A folder of the build comes first; what it lacks is refused.
  configure_consumer("${SCRATCH}/both" "-DMICA_FOLDER=${SOURCE}" -DFIND_TOO=ON)
  expect_headers("${SCRATCH}/both" "${SOURCE}/include")
  prove_own_parts()
  # The kernel units came along, optimised, and compile by the user's flags; one instruction set of one stands
  # for all.
  expect_level(-O2 "${SCRATCH}/build" consumer_kernels elementwise)
  expect_level(-O2 "${SCRATCH}/build" consumer_runtime model)
  command_of(command "${SCRATCH}/build" consumer_kernels elementwise)
  string(REGEX REPLACE "^ *\"command\": \"(.*) -o .* -c (.*)\",?$"
    "\\1 -DHWY_COMPILE_ONLY_STATIC -fsyntax-only \\2" command "${command}")
  separate_arguments(command UNIX_COMMAND "${command}")
  run(${command})
  command_of(native "${SCRATCH}/build" consumer_native_kernels elementwise)
  if(NOT native MATCHES " -DHWY_COMPILE_ONLY_STATIC=1 .* -m(arch|cpu)=native ")
    message(FATAL_ERROR "kernels for this machine are compiled by\n${native}")
  endif()
  expect_refusal("${SCRATCH}/word" "mica_add_kernels\\(other_kernels\\): 'NATVE' is not known or has no value; known: NATIVE"
    -DKERNELS_WORD=NATVE)
  # The list of instruction sets that are not compiled is that of dispatch.hpp, but for the kinds of machine of which
  # some are named.
  configure_consumer("${SCRATCH}/few" "-DKERNELS_WORD=TARGETS AVX2 AVX3")
  command_of(few "${SCRATCH}/few" other_kernels elementwise)
  set(disabled "HWY_ALL_SVE+HWY_NEON+HWY_NEON_BF16+HWY_SSSE3+HWY_SSE4+HWY_AVX3_DL+HWY_AVX3_ZEN4+HWY_AVX3_SPR")
  string(FIND "${few}" " -DHWY_DISABLED_TARGETS=${disabled} " found)
  if(found EQUAL -1)
    message(FATAL_ERROR "without ${disabled} the kernels are compiled by\n${few}")
  endif()
  # vcpkg moves the CMake files up by one folder; the units are found from there, and missed by a sentence.
  file(COPY "${SCRATCH}/moved/share/cmake/mica/mica-kernels.cmake" DESTINATION "${SCRATCH}/moved/share/mica")
  configure_consumer("${SCRATCH}/up" "-DKERNELS_FILE=${SCRATCH}/moved/share/mica/mica-kernels.cmake")
  expect_level(-O2 "${SCRATCH}/up" consumer_kernels elementwise)
  file(COPY "${SCRATCH}/moved/share/mica/mica-kernels.cmake" DESTINATION "${SCRATCH}/elsewhere")
  expect_refusal("${SCRATCH}/lost" "consumer_kernels\\) finds no units.*folders searched.*/units"
    "-DKERNELS_FILE=${SCRATCH}/elsewhere/mica-kernels.cmake")
elseif(WAY STREQUAL kernels)
  install_and_move(kernels)
  run(${configure_compiled} -B "${SCRATCH}/build")
  file(STRINGS "${SCRATCH}/build/compile_commands.json" units REGEX "\"file\": ")
  if(NOT units MATCHES "^ *\"file\": \"[^;]*/compiled/main\\.cpp\",?$")
    message(FATAL_ERROR "the project was to compile main.cpp alone, and compiles\n${units}")
  endif()
  run("${CMAKE_COMMAND}" --build "${SCRATCH}/build")
  run_compiled("${SCRATCH}/build/compiled")
  # The same call links as it is, and not with headers of another version, nor with other settings of the program.
  run(${configure_compiled} -B "${SCRATCH}/mixed" -DUNIT=mixed.cpp)
  run("${CMAKE_COMMAND}" --build "${SCRATCH}/mixed")
  file(READ "${SCRATCH}/moved/include/mica/version.hpp" text)
  string(REGEX REPLACE "MICA_VERSION_NAME [a-z0-9_]+" "MICA_VERSION_NAME v9_8_7" text "${text}")
  file(WRITE "${SCRATCH}/other/mica/version.hpp" "${text}")
  expect_no_link("${SCRATCH}/version" "highway::v9_8_7_byte_dots_matrix_unit::add" "-DHEADERS=${SCRATCH}/other")
  foreach(settings "MICA_NO_BYTE_DOTS|no_byte_dots_matrix_unit" "MICA_NO_MATRIX_UNIT|byte_dots_no_matrix_unit"
          "MICA_EVEX_DOTS|evex_dots_matrix_unit")
    string(REPLACE "|" ";" settings "${settings}")
    list(GET settings 0 definition)
    list(GET settings 1 symbol)
    expect_no_link("${SCRATCH}/${definition}" "highway::v[0-9_]*_${symbol}::add" -DSETTINGS=${definition})
  endforeach()
  # A library of another version, or with a newer Highway than there is, is not taken.
  file(GLOB_RECURSE config "${SCRATCH}/moved/mica-kernels-config.cmake")
  file(READ "${config}" text)
  string(REGEX REPLACE "MICA_HIGHWAY \"[0-9.]+\"" "MICA_HIGHWAY \"1.99\"" newer "${text}")
  if(NOT newer STREQUAL text)
    file(WRITE "${config}" "${newer}")
    expect_refusal("${SCRATCH}/highway" "mica::kernels: its kernels are compiled with Highway 1\\.99, and Highway [0-9.]+ is older"
      -DMICA_COMPONENTS=kernels)
  endif()
  file(GLOB_RECURSE version "${SCRATCH}/moved/mica-kernels-config-version.cmake")
  file(READ "${version}" text)
  string(REGEX REPLACE "PACKAGE_VERSION \"[0-9.]+\"" "PACKAGE_VERSION \"9.8.7\"" text "${text}")
  file(WRITE "${version}" "${text}")
  expect_refusal("${SCRATCH}/refused" "mica::kernels: no compiled kernels of version [0-9.]+ are in "
    -DMICA_COMPONENTS=kernels)
elseif(WAY STREQUAL components)
  install_and_move()
  expect_refusal("${SCRATCH}/kernels" "mica::kernels: no compiled kernels of version .* MICA_INSTALL_KERNELS=ON"
    -DMICA_COMPONENTS=kernels)
  expect_refusal("${SCRATCH}/refused" "mica::telepathy: there is no such component; there are eigen, "
    -DMICA_COMPONENTS=telepathy)
  if("text" IN_LIST COMPONENTS)
    # What is not asked for is not looked for, and says so where it is linked all the same.
    expect_refusal("${SCRATCH}/unasked" "mica::text needs find_package\\(mica COMPONENTS text\\)" -DLINK=text)
    expect_refusal("${SCRATCH}/lacking" "mica::text: it lacks nlohmann_json" -DMICA_COMPONENTS=text
      -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)
  endif()
elseif(WAY STREQUAL pkg_config)
  find_program(pkg_config NAMES pkg-config pkgconf)
  if(NOT pkg_config)
    message("skipped: packaging_pkg_config (there is no pkg-config)")
    return()
  endif()
  install_and_move(kernels)
  file(GLOB_RECURSE kernels "${SCRATCH}/moved/mica-kernels.pc")
  cmake_path(GET kernels PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} "${SCRATCH}/moved/share/pkgconfig:${folder}:$ENV{PKG_CONFIG_PATH}")
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
  # The line of the documentation, but that the units, which take minutes, are those of this build.
  run("${pkg_config}" --variable=units mica)
  string(STRIP "${said}" folder)
  file(GLOB installed RELATIVE "${folder}" "${folder}/*.cpp")
  file(GLOB ours RELATIVE "${SOURCE}/include/mica/kernel/highway/units"
    "${SOURCE}/include/mica/kernel/highway/units/*.cpp")
  if(NOT installed STREQUAL ours)
    message(FATAL_ERROR "${folder} has the units\n${installed}\nand not\n${ours}")
  endif()
  run("${COMPILER}" -DCONSUMER_KERNELS=Highway "${consumer}/main.cpp" "${KERNELS}" ${flags}
    -o "${SCRATCH}/consumer")
  run_consumer("${SCRATCH}/consumer")
  # With the compiled kernels, one call of the compiler makes a program.
  run("${pkg_config}" --cflags --libs mica-kernels)
  separate_arguments(flags UNIX_COMMAND "${said}")
  run("${COMPILER}" "${CMAKE_CURRENT_LIST_DIR}/compiled/main.cpp" ${flags} -o "${SCRATCH}/compiled")
  run_compiled("${SCRATCH}/compiled")
endif()
