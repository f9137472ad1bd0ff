// plain_dump pickle|json < bytes: what the reader of plain values made of standard input, as one
// JSON object with "value" and "problem".
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "inputs/common/pickle_reader.h"
#include "inputs/common/plain_json.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
  const tlparse::PlainDocument document = std::string_view(arguments[1]) == "pickle"
                                              ? tlparse::ReadPickle(bytes)
                                              : tlparse::ReadPlainJson(bytes);
  std::string value;
  if (!document.tree.root().AppendJson(value, std::size_t{64} << 20)) value = "\"<too deep>\"";
  tlparse::JsonWriter json;
  json.BeginObject().Key("value").Raw(value).Key("problem");
  if (document.problem) {
    json.BeginObject().Key("message").String(document.problem->message);
    json.Key("byte_offset").Int(document.problem->byte_offset);
    json.Key("is_cut").Bool(document.problem->is_cut).EndObject();
  } else {
    json.Null();
  }
  std::puts(json.EndObject().text().c_str());
  return 0;
}
