#include "artifacts/common/text/stack_pool.h"

#include <cstring>

#include "artifacts/common/json_members.h"
#include "artifacts/common/text/safe_text.h"
#include "queries/artifacts/common/text/stack_pool.h"
#include "rows/core.h"
#include "store/database.h"

namespace tlparse {

namespace {

void AppendNumber(std::string& key, std::int64_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  key.append(bytes, sizeof bytes);
}
void AppendText(std::string& key, std::string_view text) {
  AppendNumber(key, static_cast<std::int64_t>(text.size()));
  key.append(text);
}

// What makes a frame: its callers and its own members. NULL and "" differ.
void MakeKey(std::string& key, std::int64_t parent_id, const StackPool::Frame& frame) {
  key.clear();
  AppendNumber(key, parent_id);
  AppendNumber(key, frame.line ? *frame.line : INT64_MIN);
  key.push_back(frame.file ? 'f' : 'n');
  if (frame.file) AppendText(key, *frame.file);
  AppendText(key, frame.function);
  AppendText(key, frame.code);
}

}  // namespace

StackPool::StackPool(TableSet& tables) { tables.Use<StackFrameRow>(); }

Result<void> StackPool::Load(Database& database) {
  FOR_EACH_ROW(const StoredFrame& stored, Query<StoredFrame>(database, {.from_id = next_})) {
    Frame frame;
    if (stored.file) frame.file = *stored.file;
    frame.line = stored.line;
    frame.function = stored.function;
    frame.code = stored.code;
    MakeKey(key_, stored.parent_id, frame);
    ids_.emplace(HashBytes(key_), stored.id);
    if (stored.id >= next_) next_ = stored.id + 1;
  }
  return {};
}

std::int64_t StackPool::Child(RowBatch& rows, std::int64_t parent_id, const Frame& frame) {
  MakeKey(key_, parent_id, frame);
  const auto [entry, is_new] = ids_.try_emplace(HashBytes(key_), next_);
  if (!is_new) return entry->second;
  ++next_;
  std::optional<StaticText> file;
  if (frame.file) file = SafeText(rows, *frame.file);
  std::optional<StaticText> function;
  if (!frame.function.empty()) function = SafeText(rows, frame.function);
  std::optional<StaticText> code;
  if (!frame.code.empty()) code = SafeText(rows, frame.code);
  const std::optional<std::int64_t> parent =
      parent_id == 0 ? std::nullopt : std::optional(parent_id);
  rows.Add(StackFrameRow{.id = entry->second,
                         .parent_id = parent,
                         .file = file,
                         .line = frame.line,
                         .function = function,
                         .code = code});
  return entry->second;
}

Result<std::int64_t> StackPool::Stack(RowBatch& rows, const ProcessState& process,
                                      const simdjson::dom::element& frames,
                                      std::optional<std::int64_t>* unresolved) {
  simdjson::dom::array list;
  if (frames.get(list) != simdjson::SUCCESS)
    return Fail(ErrorCode::kBadJson, "a stack is not a list of frames");
  std::int64_t id = 0;
  for (const simdjson::dom::element element : list) {
    simdjson::dom::object object;
    if (element.get(object) != simdjson::SUCCESS) continue;
    Frame frame;
    std::string unknown;
    simdjson::dom::element member;
    if (object.at_key("filename").get(member) == simdjson::SUCCESS) {
      std::string_view text;
      if (member.get(text) == simdjson::SUCCESS) {
        frame.file = text;
      } else if (const std::optional<std::int64_t> string_id = AsInt(member);
                 string_id && *string_id != -1) {
        frame.file = process.String(*string_id);
        if (!frame.file) {
          unknown = "<unknown:" + std::to_string(*string_id) + ">";
          frame.file = unknown;
          if (unresolved != nullptr) *unresolved = *string_id;
        }
      }
    }
    if (object.at_key("line").get(member) == simdjson::SUCCESS) frame.line = AsInt(member);
    frame.function = StringMember(object, "name");
    frame.code = StringMember(object, "loc");
    id = Child(rows, id, frame);
  }
  return id;
}

}  // namespace tlparse
