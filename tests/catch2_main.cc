// main() of every test executable, compiled once. Only for Catch2 2: Catch2 3 has a library for it.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
