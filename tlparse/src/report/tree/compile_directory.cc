// compile_directory.json: compile id → the files it has.
#include <algorithm>

#include "base/json_writer.h"
#include "report/report_context.h"
#include "report/tree/file_name.h"
#include "report/tree/json_format.h"

namespace tlparse {
namespace {

std::string_view LastComponent(std::string_view path) { return path.substr(path.rfind('/') + 1); }

void AddEntry(const TreePlan& plan, const PlannedFile& file, JsonWriter& json) {
  const bool is_link = file.form == FileForm::kLink;
  const std::string path =
      is_link ? plan.link_urls[static_cast<std::size_t>(file.payload_id)] : plan.Path(file);
  json.BeginObject().Key("name").String(LastComponent(is_link ? file.name : path));
  json.Key("number").Int(file.number).Key("readable_url");
  if (file.form != FileForm::kStackTraces) {
    json.Null();
  } else {
    json.String(file.readable_name.empty() ? "" : plan.ReadablePath(file));
  }
  json.Key("suffix").String(is_link ? "" : CacheSuffix(path)).Key("url").String(path).EndObject();
}

}  // namespace

Result<void> WriteCompileDirectory(const ReportContext& context, const TreePlan& plan) {
  std::vector<const PlannedKey*> keys;
  for (const PlannedKey& key : plan.keys) keys.push_back(&key);
  std::sort(keys.begin(), keys.end(),
            [](const PlannedKey* a, const PlannedKey* b) { return a->key < b->key; });
  FileWriter out;
  RETURN_IF_ERROR(out.Open(context.directory, "compile_directory.json"));
  JsonWriter json;
  json.BeginObject();
  for (const PlannedKey* key : keys) {
    json.Key(key->key).BeginObject().Key("artifacts").BeginArray();
    for (const std::size_t file : key->files) AddEntry(plan, plan.files[file], json);
    json.EndArray().EndObject();
  }
  json.EndObject();
  AppendJson(json.text(), JsonLayout::kPretty, out);
  return out.Close();
}

}  // namespace tlparse
