#include "redact/log_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <ostream>
#include <vector>

#include "base/md5.h"
#include "log/find_logs.h"

namespace tlparse::redact {
namespace {

struct RecordText {
  std::string_view header;   // the line, without its line feed
  std::string_view payload;  // its lines as they are in the log; empty: none
};

std::string_view EnvelopeOf(std::string_view header) {
  const std::size_t at = header.find("] {");
  return at == std::string_view::npos ? std::string_view() : header.substr(at + 2);
}

// Calls `take` with each record of whole lines; returns the number of lines that belong to none.
template <typename Take>
std::int64_t ForEachRecordOf(std::string_view log, Take take) {
  std::int64_t foreign = 0;
  for (std::size_t at = 0; at < log.size();) {
    std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string_view line = log.substr(at, end - at);
    at = std::min(end + 1, log.size());
    if (!IsTraceHeaderLine(line)) {
      if (!line.empty()) ++foreign;
      continue;
    }
    const std::size_t payload = at;
    while (at < log.size() && log[at] == '\t')
      at = std::min(std::min(log.find('\n', at), log.size()) + 1, log.size());
    take(RecordText{line, log.substr(payload, at - payload)});
  }
  return foreign;
}

// The same of a log of which one record at a time is held.
template <typename Take>
Result<std::int64_t> ForEachRecord(InputStream& input, Take take) {
  constexpr std::size_t kPiece = 1 << 20;
  std::string text;
  std::int64_t foreign = 0;
  while (true) {
    const std::size_t size = text.size();
    text.resize(size + kPiece);
    ASSIGN_OR_RETURN(const std::size_t read, input.Read(text.data() + size, kPiece));
    text.resize(size + read);
    if (read == 0) return foreign + ForEachRecordOf(text, take);
    // Up to the last line that is no payload: what comes next may belong to it.
    std::size_t end = text.size() - 1;
    while (end >= size && end > 0 && (text[end - 1] != '\n' || text[end] == '\t')) --end;
    if (end < size || end == 0) continue;
    foreign += ForEachRecordOf(std::string_view(text).substr(0, end), take);
    text.erase(0, end);
  }
}

// The payload as PyTorch hashed it: without the tabs and the last line feed.
std::string PlainPayload(std::string_view payload) {
  std::string plain;
  for (std::size_t at = 0; at < payload.size();) {
    const std::size_t end = std::min(payload.find('\n', at), payload.size());
    if (at > 0) plain += '\n';
    plain += payload.substr(at + 1, end - at - 1);
    at = end + 1;
  }
  return plain;
}

bool IsJsonObject(std::string_view text) {
  static thread_local simdjson::dom::parser parser;
  simdjson::dom::element element;
  return parser.parse(text.data(), text.size()).get(element) == simdjson::SUCCESS &&
         element.is_object();
}

bool IsJson(std::string_view payload) {
  const std::size_t begin = payload.find_first_not_of("\t\n ");
  if (begin == std::string_view::npos || (payload[begin] != '{' && payload[begin] != '['))
    return false;
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  return parser.parse(payload.data(), payload.size()).get(element) == simdjson::SUCCESS;
}

// {"str": ["/a/train.py", 3]}
void TakeInterned(std::string_view envelope, TextRedactor::InternedPaths& interned) {
  if (!envelope.starts_with("{\"str\":")) return;
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  std::string_view path;
  std::int64_t number = 0;
  if (parser.parse(envelope.data(), envelope.size()).get(element) == simdjson::SUCCESS &&
      element.at_pointer("/str/0").get(path) == simdjson::SUCCESS &&
      element.at_pointer("/str/1").get(number) == simdjson::SUCCESS)
    interned[number] = path;
}

}  // namespace

Result<std::string> WholeFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputStream> input, OpenInput(path));
  std::string bytes;
  constexpr std::size_t kPiece = 1 << 20;
  while (true) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kPiece);
    ASSIGN_OR_RETURN(const std::size_t read, input->Read(bytes.data() + size, kPiece));
    bytes.resize(size + read);
    if (read == 0) return bytes;
  }
}

Result<void> HarvestLog(InputStream& log, TextRedactor& redactor) {
  TextRedactor::InternedPaths interned;
  RETURN_IF_ERROR(ForEachRecord(log, [&](const RecordText& record) {
    TakeInterned(EnvelopeOf(record.header), interned);
    redactor.Harvest(EnvelopeOf(record.header), interned);
    redactor.Harvest(record.payload, interned);
  }));
  return {};
}

Result<void> RedactLog(InputStream& log, TextRedactor& redactor, RedactedFile& file,
                       std::ostream& out) {
  ASSIGN_OR_RETURN(
      file.dropped_lines, ForEachRecord(log, [&](const RecordText& record) {
        if (!IsJsonObject(EnvelopeOf(record.header))) {
          ++file.dropped_records;
          return;
        }
        ++file.kept_records;
        const std::string_view envelope = EnvelopeOf(record.header);
        std::string header =
            redactor.Redact(record.header.substr(0, record.header.size() - envelope.size())) +
            redactor.RedactJson(envelope);
        if (record.payload.empty()) {
          out << header << '\n';
          return;
        }
        const std::string payload = IsJson(record.payload) ? redactor.RedactJson(record.payload)
                                                           : redactor.Redact(record.payload);
        const std::string before = ToHex(Md5(PlainPayload(record.payload)));
        if (const std::size_t at = header.find(before); at != std::string::npos)
          header.replace(at, before.size(), ToHex(Md5(PlainPayload(payload))));
        out << header << '\n' << payload;
        if (!payload.ends_with('\n')) out << '\n';
      }));
  return {};
}

}  // namespace tlparse::redact
