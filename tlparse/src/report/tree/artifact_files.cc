// <compile directory>/…, dump_file/… and payloads/….
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "facts/text/text_diff.h"
#include "report/report_context.h"
#include "report/tree/html.h"
#include "report/tree/json_format.h"
#include "report/tree/record_page.h"
#include "report/tree/record_scan.h"
#include "store/database.h"
#include "store/value_pieces.h"

namespace tlparse {

std::optional<std::string> SharedContent::Find(std::int64_t payload_id, FileForm form) const {
  const std::lock_guard lock(mutex_);
  const auto at = paths_.find({payload_id, form});
  return at == paths_.end() ? std::nullopt : std::optional(at->second);
}

void SharedContent::Add(std::int64_t payload_id, FileForm form, std::string path) {
  const std::lock_guard lock(mutex_);
  constexpr std::size_t kMaxPaths = 100'000;  // some 20 MB
  if (paths_.size() >= kMaxPaths) return;
  paths_.emplace(std::pair(payload_id, form), std::move(path));
}

namespace {

// A link costs about as much as a small file, and an entry in memory.
constexpr std::int64_t kMinLinkedBytes = 4096;
// Larger texts go to their file piece by piece.
constexpr std::int64_t kMostCopiedBytes = 256 << 10;
constexpr std::size_t kMaxOpenDirectories = 200;
// Of the two texts of a difference together, and of a line that is shown.
constexpr std::int64_t kMostComparedBytes = 8 << 20;
constexpr std::ptrdiff_t kMostComparedLines = 200'000;
constexpr std::size_t kMostLineBytes = 2000;

std::ptrdiff_t CountLines(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n') + 1;
}

// The beginning of a line of UTF-8, of whole characters.
std::string_view Shown(std::string_view line) {
  std::size_t size = std::min(line.size(), kMostLineBytes);
  while (size > 0 && size < line.size() &&
         (static_cast<unsigned char>(line[size]) & 0xC0U) == 0x80U)
    --size;
  return line.substr(0, size);
}

class ArtifactWriter {
 public:
  ArtifactWriter(const ReportContext& context, const TreePlan& plan)
      : context_(context), plan_(plan) {}

  Result<void> Run(std::size_t first, std::size_t end) {
    ASSIGN_OR_RETURN(payloads_, PayloadReader::Open(context_.database, &context_.budget));
    ASSIGN_OR_RETURN(pages_, RecordPages::Open(context_.database));
    for (std::size_t i = first; i < std::min(end, plan_.files.size()); ++i) {
      const PlannedFile& file = plan_.files[i];
      const bool is_repeated = file.form == FileForm::kPayload && file.payload_id == 0;
      if (file.form == FileForm::kLink || is_repeated) continue;
      RETURN_IF_ERROR(WriteFile(file));
    }
    return {};
  }

 private:
  Result<const Directory*> OpenDirectory(std::uint32_t index) {
    auto open = directories_.find(index);
    if (open == directories_.end()) {
      if (directories_.size() >= kMaxOpenDirectories) directories_.clear();
      ASSIGN_OR_RETURN(Directory directory, context_.directory.Child(plan_.directories[index]));
      open = directories_.emplace(index, std::move(directory)).first;
    }
    return &open->second;
  }

  // Forms whose bytes depend on the payload alone.
  static bool IsShareable(FileForm form) {
    return form == FileForm::kText || form == FileForm::kPayload || form == FileForm::kJson;
  }

  Result<void> WriteFile(const PlannedFile& file) {
    ASSIGN_OR_RETURN(const Directory* const directory, OpenDirectory(file.directory));
    const FileForm shared_form = file.form == FileForm::kPayload ? FileForm::kText : file.form;
    const bool is_shareable = IsShareable(file.form) && file.payload_id != 0;
    if (is_shareable) {
      const std::optional<std::string> twin = context_.shared.Find(file.payload_id, shared_form);
      if (twin && directory->Link(context_.root, *twin, file.name)) return {};
    }
    std::int64_t size_bytes = 0;
    if (file.payload_id != 0) {
      ASSIGN_OR_RETURN(size_bytes, payloads_.SizeBytes(file.payload_id));
    }
    RETURN_IF_ERROR(out_.Open(*directory, file.name));
    std::string_view content;
    if (shared_form == FileForm::kText && size_bytes > kMostCopiedBytes) {
      RETURN_IF_ERROR(ReadInPieces(context_.database, "payload_row", "content", file.payload_id,
                                   [&](std::string_view piece) { out_.Append(piece); }));
    } else {
      if (file.payload_id != 0) {
        ASSIGN_OR_RETURN(content, payloads_.Content(file.payload_id));
      }
      RETURN_IF_ERROR(Fill(file, content));
    }
    RETURN_IF_ERROR(out_.Close());
    if (is_shareable && size_bytes >= kMinLinkedBytes) {
      const std::string& above = context_.participant.directory;
      context_.shared.Add(file.payload_id, shared_form,
                          (above.empty() ? above : above + "/") + plan_.Path(file));
    }
    if (!file.readable_name.empty()) {
      RETURN_IF_ERROR(out_.Open(*directory, file.readable_name));
      AppendStackTracesPage(content, Title(file, "Kernel stack traces"), out_);
      RETURN_IF_ERROR(out_.Close());
    }
    payloads_.Release();
    return {};
  }

  std::string Title(const PlannedFile& file, std::string_view what) const {
    return fmt::format("{} {}", what, plan_.keys[file.key].key);
  }

  Result<void> Fill(const PlannedFile& file, std::string_view content) {
    switch (file.form) {
      case FileForm::kText:
      case FileForm::kPayload:
        out_.Append(content);
        break;
      case FileForm::kJson:
      case FileForm::kStackTraces:
        if (!AppendJson(content, JsonLayout::kPretty, out_)) {
          out_.Restart();
          out_.Append(content);
        }
        break;
      case FileForm::kCodePage:
        AppendPageStart(Title(file, "Generated code"), out_);
        AppendNumberedLines(content, out_);
        AppendPageEnd(out_);
        break;
      case FileForm::kDumpPage:
        AppendPageStart(file.name.substr(0, file.name.rfind('.')), out_);
        AppendNumberedLines(content, out_);
        AppendPageEnd(out_);
        break;
      case FileForm::kGuardsPage:
        AppendGuardsPage(content, Title(file, "Guards"), out_);
        break;
      case FileForm::kMetricsPage:
        return pages_.AppendMetadataPage(file.record_id, Title(file, "Compilation metrics"), "../",
                                         out_);
      case FileForm::kSymbolPage:
        return pages_.AppendMetadataPage(file.record_id, Title(file, "Symbolic guard"), "../",
                                         out_);
      case FileForm::kPassDiffPage:
        return AppendPassDiff(file, std::string(content));
      case FileForm::kLink:
        break;
    }
    return {};
  }

  Result<void> AppendPassDiff(const PlannedFile& file, const std::string& after) {
    const std::string_view dump = std::string_view(file.name).substr(0, file.name.rfind(".diff"));
    AppendPageStart(Title(file, fmt::format("What {} changed", dump)), out_);
    ASSIGN_OR_RETURN(const std::int64_t before_bytes, payloads_.SizeBytes(file.before_id));
    const auto after_bytes = static_cast<std::int64_t>(after.size());
    std::string_view before;
    bool is_large = before_bytes + after_bytes > kMostComparedBytes;
    if (!is_large) {
      ASSIGN_OR_RETURN(before, payloads_.Content(file.before_id));
      is_large = CountLines(before) + CountLines(after) > kMostComparedLines;
    }
    if (is_large) {
      out_.Append(fmt::format(
          "<p>The graphs before and after this pass have {} and {} bytes, too much to be compared "
          "here. Beside this page are both: {}_&lt;number&gt;.txt is the graph after the pass, the "
          "dump before it the graph before the pass.</p>\n",
          before_bytes, after_bytes, Html(dump)));
    } else {
      AppendDiff(UnifiedDiff(before, after, "before", "after"));
    }
    AppendPageEnd(out_);
    return {};
  }

  void AppendDiff(const std::string& diff) {
    if (diff.empty()) out_.Append("<p>Nothing.</p>\n");
    out_.Append("<pre>");
    for (const std::string_view line : SplitLines(diff)) {
      const std::string_view tag = line.starts_with('+')   ? "ins"
                                   : line.starts_with('-') ? "del"
                                                           : "span";
      const std::string_view shown = Shown(line);
      out_.Append(fmt::format("<{0}>{1}", tag, Html(shown)));
      if (shown.size() < line.size())
        out_.Append(fmt::format("… ({} more bytes)", line.size() - shown.size()));
      out_.Append(fmt::format("</{}>\n", tag));
    }
    out_.Append("</pre>\n");
  }

  const ReportContext& context_;
  const TreePlan& plan_;
  PayloadReader payloads_;
  RecordPages pages_;
  FileWriter out_;
  std::unordered_map<std::uint32_t, Directory> directories_;
};

}  // namespace

Result<void> WriteArtifactFiles(const ReportContext& context, const TreePlan& plan,
                                std::size_t first, std::size_t end) {
  return ArtifactWriter(context, plan).Run(first, end);
}

}  // namespace tlparse
