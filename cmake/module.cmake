# module(NAME): makes a folder src/GROUP/NAME a module.
#
# The module's library is every *.cpp below it; what it links is its line in modules.txt, so the written rule and the
# linked truth are one. Found by name: *_test.cpp (one gtest program NAME_test), *_fuzz.cpp (one fuzzer each; outside
# the fuzz preset the same file is built with a main that replays the committed corpus, so every build runs it). A module
# may say more with target_sources(NAME ...).
include_guard()
include(libraries)
include(numeric_loops)
include(GoogleTest)

# The tests of all modules and all fuzzers: what the sanitizer presets build, without the programs.
add_custom_target(module_tests)

file(STRINGS ${CMAKE_SOURCE_DIR}/modules.txt module_lines REGEX "^[a-z0-9_/]+:")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/modules.txt)
foreach(line IN LISTS module_lines)
  string(REGEX MATCH "^([a-z0-9_]+/)?([a-z0-9_]+):([^|]*)\\|([^|]*)\\|(.*)$" _ "${line}")
  if(NOT CMAKE_MATCH_2)
    message(FATAL_ERROR "modules.txt: a line must read 'group/module: modules | libraries | facilities', but this one does not: ${line}")
  endif()
  set(module ${CMAKE_MATCH_2})
  separate_arguments(module_${module}_uses UNIX_COMMAND "${CMAKE_MATCH_3}")
  separate_arguments(module_${module}_libraries UNIX_COMMAND "${CMAKE_MATCH_4}")
  if(CMAKE_MATCH_1)
    list(APPEND modules ${CMAKE_MATCH_1}${module})
  endif()
endforeach()

file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/compiled_alone.txt compiled_alone REGEX "^src/")
list(TRANSFORM compiled_alone PREPEND ${CMAKE_SOURCE_DIR}/)
file(GLOB compiled_alone CONFIGURE_DEPENDS ${compiled_alone})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/compiled_alone.txt)

# Modules that no request for a job, no byte of data and no gradient waits for. The release preset compiles them with -O1,
# in three quarters of the time that -O2 takes; the fuzz preset with -O0, in half of the time that -O1 takes.
set(cold_modules contract client containers preflight launch campaign cluster_setup config shapes batch_api cloudwatch
  logs iam ec2 service_quotas fsx file_systems sns events notify trainyard_api console cli entry)

# Links what a module (or apps, sim, bench) may use by its line in modules.txt.
function(link_as_module target module)
  foreach(used IN LISTS module_${module}_uses)
    if(TARGET ${used})
      target_link_libraries(${target} PUBLIC ${used})
    endif()
  endforeach()
  foreach(library IN LISTS module_${module}_libraries)
    target_link_libraries(${target} PUBLIC lib::${library})
  endforeach()
endfunction()

function(compile_as_cold target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:RelWithDebInfo>>:-O1> $<$<BOOL:${FUZZ}>:-O0>)
endfunction()

function(module name)
  if(NOT DEFINED module_${name}_uses AND NOT DEFINED module_${name}_libraries)
    message(FATAL_ERROR "module ${name}: no line in modules.txt")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  list(FILTER sources EXCLUDE REGEX "/programs/")  # these have a main each
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cpp$")
  set_source_files_properties(${compiled_alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(NOT sources)
    set(sources ${CMAKE_SOURCE_DIR}/cmake/empty.cpp)
  endif()
  add_library(${name} STATIC ${sources})
  get_filename_component(group ${CMAKE_CURRENT_SOURCE_DIR} DIRECTORY)
  target_include_directories(${name} PUBLIC ${group})
  target_link_libraries(${name} PRIVATE warnings)
  link_as_module(${name} ${name})
  if(name IN_LIST cold_modules)
    compile_as_cold(${name})
  endif()

  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${name} warnings GTest::gtest GTest::gtest_main)
    target_compile_options(${name}_test PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Og>)  # compiled as fast as with -O0, run in a third of its time
    if(FUZZ)  # the coverage of tests is not read: without it and the optimiser they are compiled in a third of the time
      target_compile_options(${name}_test PRIVATE -O0 -fno-sanitize=fuzzer-no-link -fno-profile-instr-generate -fno-coverage-mapping)
    endif()
    add_dependencies(module_tests ${name}_test)
    # RealSlurm needs a cluster: tests/slurm starts one and runs it.
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST TEST_FILTER "-RealSlurm*" PROPERTIES LABELS module TIMEOUT 300
      TEST_PREFIX ${name}. WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  foreach(file IN LISTS fuzzers)
    get_filename_component(fuzzer ${file} NAME_WE)
    fuzzer(${fuzzer} ${file} ${name})
  endforeach()
endfunction()

# fuzzer(NAME FILE MODULE): LLVMFuzzerTestOneInput in FILE. Its corpus is tests/corpus/NAME/.
function(fuzzer name file module)
  add_executable(${name} ${file})
  target_link_libraries(${name} PRIVATE ${module} warnings)
  add_dependencies(module_tests ${name})
  if(FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/replay_corpus.cpp)
  endif()
  add_test(NAME fuzz.${name} COMMAND ${name} -runs=0 ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
endfunction()
