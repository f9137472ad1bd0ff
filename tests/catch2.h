// The one include of a test: Catch2 2 (Debian 12) has a single header, Catch2 3 (later) has many.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
