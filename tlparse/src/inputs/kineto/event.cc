#include "inputs/kineto/event.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/ascii.h"
#include "base/json_repair.h"
#include "base/utf8.h"

namespace tlparse {
namespace {

namespace od = simdjson::ondemand;

std::string_view Trim(std::string_view token) {
  while (!token.empty() && (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' ||
                            token.back() == '\t')) {
    token.remove_suffix(1);
  }
  return token;
}

// The text of a string, or the digits of a number.
std::string_view TextOf(od::value& value) {
  od::json_type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return {};
  std::string_view text;
  if (type == od::json_type::string) {
    return value.get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
  }
  return type == od::json_type::number ? Trim(value.raw_json_token()) : std::string_view();
}

// Integers are written as numbers or, by some exporters, as text.
std::optional<std::int64_t> IntOf(od::value& value) {
  const std::string_view text = TextOf(value);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view RawOf(od::value& value) {
  od::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return {};
  std::string_view raw;
  return array.raw_json().get(raw) == simdjson::SUCCESS ? Trim(raw) : std::string_view();
}

// A list as the profiler writes it, of a file that was printed anew over several lines:
// "[\n  56,\n  1\n]" becomes "[56, 1]".
std::string_view OneLine(std::string_view list, std::string& buffer) {
  if (list.find_first_of("\n\r\t") == list.npos) return list;
  buffer.clear();
  bool is_text = false, is_escaped = false;
  for (const char c : list) {
    if (is_text) {
      is_text = c != '"' || is_escaped;
      is_escaped = c == '\\' && !is_escaped;
    } else if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
      continue;
    } else {
      is_text = c == '"';
    }
    buffer += c;
    if (c == ',' && !is_text) buffer += ' ';
  }
  return buffer;
}

// What a collective, a send or a receive says of itself.
void ReadCollectiveArgument(std::string_view key, od::value& value, KinetoEvent& event) {
  if (key == "Seq") event.sequence_in_group = IntOf(value);
  if (key == "dtype") event.dtype = TextOf(value);
  if (key == "Src Rank" || key == "Dst Rank") event.peer_rank = IntOf(value);
  if (key == "Group size") event.group_size = IntOf(value);
  if (key == "In msg nelems") event.in_elements = IntOf(value);
  if (key == "Out msg nelems") event.out_elements = IntOf(value);
  if (key == "Collective name") event.collective = TextOf(value);
  if (key == "Process Group Name") event.group_name = TextOf(value);
}

void ReadArgument(std::string_view key, od::value& value, KinetoEvent& event) {
  switch (key.size()) {
    case 4:
      if (key == "name") event.metadata_name = TextOf(value);
      if (key == "grid") event.grid = RawOf(value);
      if (key == "Addr") event.address = IntOf(value);
      return;
    case 5:
      if (key == "block") event.block = RawOf(value);
      if (key == "bytes") event.size_bytes = IntOf(value);
      if (key == "Bytes") event.change_bytes = IntOf(value);
      return ReadCollectiveArgument(key, value, event);
    case 6:
      if (key == "device") event.device = IntOf(value);
      if (key == "stream") event.stream = IntOf(value);
      return;
    case 9:
      if (key == "Task Type") event.task_type = TextOf(value);
      if (key == "Stream Id") event.stream = IntOf(value);
      if (key == "Device Id") event.device_id = IntOf(value);
      return;
    case 8:
      if (key == "CallFrom") event.called_from = TextOf(value);
      return ReadCollectiveArgument(key, value, event);
    case 10:
      if (key == "Input Dims") event.shapes = RawOf(value);
      if (key == "Input dims") event.shapes = RawOf(value);
      if (key == "Input type") event.types = RawOf(value);
      return ReadCollectiveArgument(key, value, event);
    case 11:
      if (key == "External id" || key == "external id") event.external_id = IntOf(value);
      if (key == "correlation") event.correlation = IntOf(value);
      if (key == "kernel_file") event.kernel_file = TextOf(value);
      if (key == "Device Type") event.device_type = IntOf(value);
      return;
    case 14:
      if (key == "Total Reserved") event.reserved_bytes = IntOf(value);
      return ReadCollectiveArgument(key, value, event);
    case 15:
      if (key == "Sequence number") event.sequence_number = IntOf(value);
      if (key == "Concrete Inputs") event.values = RawOf(value);
      if (key == "Total Allocated") event.allocated_bytes = IntOf(value);
      return ReadCollectiveArgument(key, value, event);
    case 3:
    case 13:
    case 18:
      return ReadCollectiveArgument(key, value, event);
    default:
      return;
  }
}

void ReadMember(std::string_view key, od::value& value, KinetoEvent& event) {
  switch (key.size()) {
    case 2:
      if (key == "ts") event.start_ns = ParseMicroseconds(TextOf(value));
      if (key == "ph") {
        const std::string_view phase = TextOf(value);
        event.phase = phase.empty() ? '\0' : phase.front();
      }
      return;
    case 3:
      if (key == "cat") event.category = TextOf(value);
      if (key == "dur") {
        event.has_duration = true;
        event.duration_ns = ParseMicroseconds(TextOf(value));
      }
      if (key == "pid") event.pid = TextOf(value);
      if (key == "tid") event.tid = TextOf(value);
      return;
    case 4:
      if (key == "name") event.name = TextOf(value);
      if (key == "args") {
        od::object arguments;
        if (value.get_object().get(arguments) != simdjson::SUCCESS) return;
        for (auto argument : arguments) {
          std::string_view name;
          od::value inner;
          if (argument.unescaped_key().get(name) != simdjson::SUCCESS ||
              argument.value().get(inner) != simdjson::SUCCESS) {
            return;
          }
          ReadArgument(name, inner, event);
        }
      }
      return;
    default:
      return;
  }
}

}  // namespace

std::optional<std::int64_t> ParseMicroseconds(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || !IsDigit(text.front())) return std::nullopt;
  if (text.find_first_of("eE") != text.npos) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value < 9e15))
      return std::nullopt;
    return std::llround(is_negative ? -value * 1e3 : value * 1e3);
  }
  std::int64_t us = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), us);
  if (error != std::errc() || us > INT64_MAX / 1000 - 1) return std::nullopt;
  std::int64_t ns = us * 1000;
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest.starts_with('.')) {
    std::int64_t place = 100;
    rest.remove_prefix(1);
    bool rounds_up = false;
    for (std::size_t i = 0; i < rest.size(); ++i, place /= 10) {
      if (!IsDigit(rest[i])) return std::nullopt;
      ns += (rest[i] - '0') * place;
      if (i == 3) rounds_up = rest[i] >= '5';
    }
    ns += rounds_up ? 1 : 0;
  } else if (!rest.empty()) {
    return std::nullopt;
  }
  return is_negative ? -ns : ns;
}

Result<void> KinetoEventParser::Parse(std::string_view text, KinetoEvent& event) {
  event = KinetoEvent{};
  od::document document;
  simdjson::error_code error =
      parser_.iterate(text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING)
          .get(document);
  // simdjson refuses a string with half a pair of surrogates.
  const bool may_hold_half = text.find("\\ud") != text.npos || text.find("\\uD") != text.npos;
  if (may_hold_half) {
    Result<RepairedJson> repaired = RepairJson(text);
    if (!repaired) return tl::unexpected<Error>(repaired.error());
    repaired_ = std::move(repaired->text);
  } else if (error == simdjson::UTF8_ERROR) {
    repaired_ = SanitizeUtf8(text);
  }
  if (may_hold_half || error == simdjson::UTF8_ERROR) {
    const std::size_t size = repaired_.size();
    repaired_.resize(size + simdjson::SIMDJSON_PADDING);
    error = parser_.iterate(repaired_.data(), size, repaired_.size()).get(document);
  }
  od::object object;
  if (error == simdjson::SUCCESS) error = document.get_object().get(object);
  if (error != simdjson::SUCCESS)
    return Fail(ErrorCode::kBadJson, std::string("it is no JSON object: ") + error_message(error));
  for (auto field : object) {
    std::string_view key;
    od::value value;
    if ((error = field.unescaped_key().get(key)) != simdjson::SUCCESS ||
        (error = field.value().get(value)) != simdjson::SUCCESS) {
      return Fail(ErrorCode::kBadJson, std::string("it is damaged: ") + error_message(error));
    }
    ReadMember(key, value, event);
  }
  event.grid = OneLine(event.grid, grid_);
  event.block = OneLine(event.block, block_);
  event.shapes = OneLine(event.shapes, shapes_);
  return {};
}

}  // namespace tlparse
