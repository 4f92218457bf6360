# find_package(lookaside CONFIG) finds this file: it tells CMake what was installed.
#
#   lookaside::lookaside    the shared library, for C and C++
#   lookaside::static       the static library and what it needs
#   lookaside::cpp          lookaside.hpp: the shared library, and C++17
#
# It lies in PREFIX/share/cmake/lookaside and looks for the rest from there, so that the folder can be moved as a whole.
# Both ways to install, `crates/capi/install` and `cargo cinstall`, copy it as it is.

get_filename_component(_lookaside_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# Distributions choose the folder of libraries: lib, lib64 or lib/TRIPLET.
foreach(_lookaside_form shared static)
    set(_lookaside_file "liblookaside.so")
    if(_lookaside_form STREQUAL "static")
        set(_lookaside_file "liblookaside.a")
    endif()
    find_library(_lookaside_${_lookaside_form}
        NAMES ${_lookaside_file}
        PATHS "${_lookaside_prefix}"
        PATH_SUFFIXES "lib/${CMAKE_LIBRARY_ARCHITECTURE}" lib lib64
        NO_DEFAULT_PATH NO_CACHE)
endforeach()

if(NOT _lookaside_shared AND NOT _lookaside_static)
    set(lookaside_FOUND FALSE)
    set(lookaside_NOT_FOUND_MESSAGE "neither liblookaside.so nor liblookaside.a is below ${_lookaside_prefix}")
    return()
endif()

if(_lookaside_shared AND NOT TARGET lookaside::lookaside)
    add_library(lookaside::lookaside SHARED IMPORTED)
    set_target_properties(lookaside::lookaside PROPERTIES
        IMPORTED_LOCATION "${_lookaside_shared}"
        INTERFACE_INCLUDE_DIRECTORIES "${_lookaside_prefix}/include")
    add_library(lookaside::cpp INTERFACE IMPORTED)
    set_target_properties(lookaside::cpp PROPERTIES
        INTERFACE_LINK_LIBRARIES lookaside::lookaside
        INTERFACE_COMPILE_FEATURES cxx_std_17)
endif()

if(_lookaside_static AND NOT TARGET lookaside::static)
    add_library(lookaside::static STATIC IMPORTED)
    set_target_properties(lookaside::static PROPERTIES
        IMPORTED_LOCATION "${_lookaside_static}"
        INTERFACE_INCLUDE_DIRECTORIES "${_lookaside_prefix}/include"
        INTERFACE_LINK_LIBRARIES "pthread;${CMAKE_DL_LIBS};m")
endif()

unset(_lookaside_prefix)
unset(_lookaside_form)
unset(_lookaside_file)
unset(_lookaside_shared)
unset(_lookaside_static)
