# torch_module(NAME): as module(NAME), for a module that sees libtorch. Its sources, and then its tests, share one
# precompiled header. Nothing of it is built unless a target requests it: ./yard algorithms.
#
# The libtorch is Debian's by default; -DTORCH_ROOT=DIR names another one, with CUDA for example. Without one, and in the
# builds with sanitizers, which have their own runtime, these modules do not exist.
include_guard()

set(TORCH_ROOT "" CACHE PATH "The directory with include/ and lib/ of a libtorch; empty: the system's")
set(torch_places)
if(TORCH_ROOT)
  set(torch_places PATHS ${TORCH_ROOT} NO_DEFAULT_PATH)
endif()
find_path(TORCH_INCLUDE ATen/ATen.h ${torch_places} PATH_SUFFIXES include)
foreach(library torch torch_cpu c10)
  find_library(TORCH_LIBRARY_${library} ${library} ${torch_places} PATH_SUFFIXES lib)
endforeach()
if(TORCH_INCLUDE AND TORCH_LIBRARY_torch_cpu AND TARGET images AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
    AND NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  add_library(lib_torch INTERFACE)
  target_include_directories(lib_torch SYSTEM INTERFACE ${TORCH_INCLUDE} ${TORCH_INCLUDE}/torch/csrc/api/include)
  target_link_libraries(lib_torch INTERFACE ${TORCH_LIBRARY_torch} ${TORCH_LIBRARY_torch_cpu} ${TORCH_LIBRARY_c10})
  add_library(lib::torch ALIAS lib_torch)
endif()

# ccache finds objects of a precompiled header only if it may ignore the times in it.
set(torch_launcher)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  list(INSERT CMAKE_CXX_COMPILER_LAUNCHER 1 CCACHE_SLOPPINESS=pch_defines,time_macros)
  set(torch_launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

function(compile_with_torch target header_of)
  target_compile_options(${target} PRIVATE -fpch-preprocess)
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${torch_launcher}" EXCLUDE_FROM_ALL ON)
  if(header_of)
    target_precompile_headers(${target} REUSE_FROM ${header_of})
  else()
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src/compute/parallel/torch.hpp)
  endif()
endfunction()

# torch_module(NAME [HEADER_OF MODULE]): HEADER_OF names the module whose precompiled header it uses.
function(torch_module name)
  cmake_parse_arguments(options "" "HEADER_OF" "" ${ARGN})
  if(NOT TARGET lib::torch)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/src/compute)
  target_link_libraries(${name} PRIVATE warnings)
  link_as_module(${name} ${name})
  compile_with_torch(${name} "${options_HEADER_OF}")
  add_executable(${name}_test ${tests})
  target_link_libraries(${name}_test PRIVATE ${name} warnings GTest::gtest GTest::gtest_main)
  set(header_of ${name})
  if(options_HEADER_OF)
    set(header_of ${options_HEADER_OF})
  endif()
  compile_with_torch(${name}_test ${header_of})
endfunction()
