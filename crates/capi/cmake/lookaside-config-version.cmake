# The version that is installed, for find_package(lookaside VERSION CONFIG). A test compares it with the package's.
#
# A newer library runs the programs of an older one of the same major version; before 1.0, of the same minor one.

set(PACKAGE_VERSION "0.1.0")

string(REGEX MATCH "^(0\\.[0-9]+|[1-9][0-9]*)" _lookaside_series "${PACKAGE_VERSION}")
string(REGEX MATCH "^(0\\.[0-9]+|[1-9][0-9]*)" _lookaside_wanted "${PACKAGE_FIND_VERSION}")

if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION OR NOT _lookaside_series STREQUAL _lookaside_wanted)
    set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
    if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
        set(PACKAGE_VERSION_EXACT TRUE)
    endif()
endif()

unset(_lookaside_series)
unset(_lookaside_wanted)
