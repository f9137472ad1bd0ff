// compile_directory.json: compile id → the files it has.
#include <fmt/format.h>

#include <algorithm>

#include "report/report_context.h"
#include "report/tree/file_name.h"
#include "report/tree/json_format.h"

namespace tlparse {
namespace {

std::string_view LastComponent(std::string_view path) { return path.substr(path.rfind('/') + 1); }

void AppendEntry(const TreePlan& plan, const PlannedFile& file, FileWriter& out) {
  const bool is_link = file.form == FileForm::kLink;
  const std::string path =
      is_link ? plan.link_urls[static_cast<std::size_t>(file.payload_id)] : plan.Path(file);
  std::string text = "      {\n        \"name\": ";
  text += JsonString(LastComponent(is_link ? file.name : path));
  text += fmt::format(",\n        \"number\": {},\n        \"readable_url\": ", file.number);
  if (file.form != FileForm::kStackTraces) {
    text += "null";
  } else {
    text += JsonString(file.readable_name.empty() ? "" : plan.ReadablePath(file));
  }
  text += ",\n        \"suffix\": ";
  text += JsonString(is_link ? "" : CacheSuffix(path));
  text += ",\n        \"url\": ";
  text += JsonString(path);
  text += "\n      }";
  out.Append(text);
}

}  // namespace

Result<void> WriteCompileDirectory(const ReportContext& context, const TreePlan& plan) {
  std::vector<const PlannedKey*> keys;
  for (const PlannedKey& key : plan.keys) keys.push_back(&key);
  std::sort(keys.begin(), keys.end(),
            [](const PlannedKey* a, const PlannedKey* b) { return a->key < b->key; });
  FileWriter out;
  RETURN_IF_ERROR(out.Open(context.directory, "compile_directory.json"));
  out.Append('{');
  for (const PlannedKey* key : keys) {
    out.Append(key == keys.front() ? "\n  " : ",\n  ");
    out.Append(JsonString(key->key));
    out.Append(": {\n    \"artifacts\": [");
    for (std::size_t i = 0; i < key->files.size(); ++i) {
      out.Append(i == 0 ? "\n" : ",\n");
      AppendEntry(plan, plan.files[key->files[i]], out);
    }
    out.Append(key->files.empty() ? "]\n  }" : "\n    ]\n  }");
  }
  out.Append(keys.empty() ? "}" : "\n}");
  return out.Close();
}

}  // namespace tlparse
