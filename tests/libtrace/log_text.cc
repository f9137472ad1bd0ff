#include "tests/libtrace/log_text.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "libtrace/log_format.h"
#include "tests/catch2.h"

namespace libtrace::testing {
namespace {

std::string Md5(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_md5(), nullptr);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    constexpr char kHex[] = "0123456789abcdef";
    hex += kHex[digest[i] >> 4];
    hex += kHex[digest[i] & 15];
  }
  return hex;
}

void CheckInternedIds(const LoggedRecord& record, std::set<std::string>& defined) {
  const std::string_view text = record.envelope;
  const auto number_at = [&](size_t at) {
    const size_t end = text.find_first_not_of("0123456789", at);
    return std::string(text.substr(at, end - at));
  };
  if (text.starts_with("{\"str\": [\"")) {
    const std::string id = number_at(text.rfind("\", ") + 3);
    CHECK(id == std::to_string(defined.size()));  // dense, from 0
    defined.insert(id);
    return;
  }
  constexpr std::string_view kUse = "\"filename\": ";
  for (size_t at = text.find(kUse); at != text.npos; at = text.find(kUse, at + 1)) {
    const std::string id = number_at(at + kUse.size());
    if (id.empty()) continue;  // of a record that has a member of that name
    INFO(record.envelope);
    CHECK(defined.count(id) == 1);
  }
}

}  // namespace

std::string LoggedRecord::pid() const {
  std::istringstream words(prefix);
  std::string word;
  for (int i = 0; i < 3; ++i) words >> word;
  return word;
}

bool LoggedRecord::IsArtifact(std::string_view name) const {
  return envelope.starts_with(
      std::string("{\"artifact\": {\"name\": \"").append(name).append("\""));
}

std::vector<LoggedRecord> ParseLog(std::string_view text) {
  // Applied to short texts only: std::regex recurses per character.
  static const std::regex kPrefix(R"(V\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ [^\n]+?:\d+\] )");
  static const std::regex kHash(R"re(, "has_payload": "([0-9a-f]{32})"\}$)re");
  std::vector<LoggedRecord> records;
  std::set<std::string> defined;
  REQUIRE((text.empty() || text.back() == '\n'));
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string line(text.substr(0, end));
    text.remove_prefix(end + 1);
    INFO("line: " << line.substr(0, 300));
    const size_t brace = line.find("] {") + 2;
    REQUIRE(brace < line.size());
    REQUIRE(line.back() == '}');
    LoggedRecord record{line.substr(0, brace), line.substr(brace), {}, false};
    REQUIRE(std::regex_match(record.prefix, kPrefix));
    CHECK(std::all_of(record.envelope.begin(), record.envelope.end(),
                      [](char c) { return c >= 0x20 && c < 0x7F; }));
    size_t size = 0;
    while (size < text.size() && text[size] == '\t') size = text.find('\n', size) + 1;
    record.has_payload = size > 0;
    record.payload = format::JoinPayloadLines(text.substr(0, size));
    text.remove_prefix(size);
    std::smatch hash;
    const std::string end_of_envelope = record.envelope.substr(
        record.envelope.size() - std::min<size_t>(record.envelope.size(), 60));
    const bool has_hash = std::regex_search(end_of_envelope, hash, kHash);
    CHECK(has_hash == record.has_payload);
    if (has_hash) CHECK(hash[1].str() == Md5(record.payload));
    CheckInternedIds(record, defined);
    records.push_back(std::move(record));
  }
  return records;
}

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> LogsIn(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (format::ParseFileName(entry.path().filename().native())) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::optional<LoggedRecord> FindRecord(const std::vector<LoggedRecord>& records,
                                       std::string_view text) {
  for (const LoggedRecord& record : records) {
    if (record.Has(text)) return record;
  }
  return std::nullopt;
}

std::string PayloadsOf(const std::vector<LoggedRecord>& records, std::string_view artifact) {
  std::string text;
  for (const LoggedRecord& record : records) {
    if (record.IsArtifact(artifact)) text += record.payload;
  }
  return text;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "libtrace_test_XXXXXX").string();
  path_ = mkdtemp(name.data());
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

MemoryTrace::MemoryTrace(Options options)
    : sink_(std::make_shared<MemorySink>()), errors_(std::make_shared<std::vector<std::string>>()) {
  options.sink = sink_;
  if (!options.on_error) {
    options.on_error = [errors = errors_](LossKind kind, const std::string& message) {
      errors->push_back(std::string(ToString(kind)) + ": " + message);
    };
  }
  REQUIRE(Start(std::move(options)));
}

MemoryTrace::~MemoryTrace() {
  Stop();
  SetRank(std::nullopt);
}

std::vector<LoggedRecord> MemoryTrace::records() { return ParseLog(text()); }

std::string MemoryTrace::text() {
  CHECK(Flush());
  return sink_->text();
}

}  // namespace libtrace::testing
