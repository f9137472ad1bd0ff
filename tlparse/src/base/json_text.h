// Parts of the text of strict JSON, and changes to it. Linear time, no recursion.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

// The text of the value of top-level member `key` of `object`; empty if there is none. With repeated keys: the last.
std::string_view MemberText(std::string_view object, std::string_view key);

// `object` with [] and {} in place of the lists and objects above 16 KiB among the values of its members, and among those of an
// object that is a member. Needs no memory but the result's.
std::string WithoutLargeValues(std::string_view object);

// `json` with numbers that simdjson 3.0 cannot take (integers over 64 bits, floats out of range) spelt as floating point numbers
// within range: 18446744073709551616 becomes 18446744073709551616e0, 1e999 becomes 1e300.
std::string WithoutBigIntegers(std::string_view json);

// `json` with quotes around numbers of 19 and more characters that have no fraction and around those with an exponent of three
// and more: 1e999 becomes "1e999". Keeps their text, unlike WithoutBigIntegers.
std::string QuoteOddNumbers(std::string_view json);

}  // namespace tlparse
