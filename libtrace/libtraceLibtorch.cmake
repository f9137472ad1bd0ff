# libtrace_find_torch(QUIET|REQUIRED): finds libtorch as find_package(Torch) does, with what that sets (Torch_FOUND,
# Torch_VERSION, TORCH_INCLUDE_DIRS, TORCH_LIBRARIES, TORCH_CXX_FLAGS).
#
# The CMake files of official builds with CUDA stop where there is no CUDA toolkit, although programs that use
# libtorch need none. For these the target `torch` is made here, of libtorch_cpu.so and libc10.so: nothing of CUDA
# is loaded that these do not load. A program that runs on a GPU also links libtorch.so, or calls
# find_package(Torch) first.
macro(libtrace_find_torch how)
  set(libtrace_torch_prefix "")
  if(NOT TARGET torch)
    foreach(libtrace_place IN ITEMS ${Torch_DIR} ${CMAKE_PREFIX_PATH})
      foreach(libtrace_suffix IN ITEMS . Torch share/cmake/Torch)
        if(NOT libtrace_torch_prefix AND EXISTS ${libtrace_place}/${libtrace_suffix}/TorchConfig.cmake)
          get_filename_component(libtrace_torch_prefix ${libtrace_place}/${libtrace_suffix}/../../.. ABSOLUTE)
        endif()
      endforeach()
    endforeach()
  endif()
  if(libtrace_torch_prefix AND EXISTS ${libtrace_torch_prefix}/lib/libtorch_cuda.so)
    libtrace_make_torch(${libtrace_torch_prefix})
  else()
    find_package(Torch ${how})
  endif()
endmacro()

macro(libtrace_make_torch prefix)
  set(TORCH_INSTALL_PREFIX ${prefix})
  set(TORCH_INCLUDE_DIRS ${prefix}/include ${prefix}/include/torch/csrc/api/include)
  set(libtrace_torch_cmake ${prefix}/share/cmake/Torch)
  file(STRINGS ${libtrace_torch_cmake}/TorchConfigVersion.cmake Torch_VERSION REGEX "PACKAGE_VERSION \"")
  string(REGEX REPLACE ".*\"([^\"]*)\".*" "\\1" Torch_VERSION "${Torch_VERSION}")
  # Until 2.6 official builds have the old ABI of std::string.
  file(STRINGS ${libtrace_torch_cmake}/TorchConfig.cmake TORCH_CXX_FLAGS REGEX "_GLIBCXX_USE_CXX11_ABI=0")
  if(TORCH_CXX_FLAGS)
    set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")
  endif()
  # What its headers need: C++20 in newer ones. Before 2.15 a property says it, which does not reach the programs.
  file(STRINGS ${libtrace_torch_cmake}/TorchConfig.cmake libtrace_torch_standard
    REGEX "(target_compile_features.* cxx_std_|CXX_STANDARD )[0-9]+")
  string(REGEX MATCH "(cxx_std_|CXX_STANDARD )[0-9]+" libtrace_torch_standard "${libtrace_torch_standard};cxx_std_17")
  string(REPLACE "CXX_STANDARD " "cxx_std_" libtrace_torch_standard "${libtrace_torch_standard}")
  add_library(torch INTERFACE IMPORTED)
  target_compile_features(torch INTERFACE ${libtrace_torch_standard})
  foreach(libtrace_library IN ITEMS torch_cpu c10)
    add_library(${libtrace_library} SHARED IMPORTED)
    set_target_properties(${libtrace_library} PROPERTIES IMPORTED_LOCATION ${prefix}/lib/lib${libtrace_library}.so)
    target_link_libraries(torch INTERFACE ${libtrace_library})
  endforeach()
  set_target_properties(torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}" INTERFACE_COMPILE_OPTIONS "${TORCH_CXX_FLAGS}")
  set(TORCH_LIBRARIES torch)
  set(Torch_FOUND TRUE)
endmacro()
