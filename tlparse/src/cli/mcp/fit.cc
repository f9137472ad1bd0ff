#include "cli/mcp/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/printable.h"
#include "cli/terminal.h"

namespace tlparse {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::element_type;
using simdjson::dom::object;

// How much of texts and lists is shown, and to which depth.
struct Measure {
  std::size_t text, items, depth;
};
constexpr std::array<Measure, 7> kMeasures = {
    {{4000, 32, 99}, {400, 12, 99}, {240, 6, 8}, {160, 3, 8}, {100, 2, 6}, {60, 1, 5}, {40, 0, 4}}};
// The title of a row is the sentence that answers; without its middle it names nothing.
constexpr std::size_t kTitle = 300;
// Of the envelope around the document.
constexpr std::size_t kReserve = 260;

bool IsEmpty(element value) {
  switch (value.type()) {
    case element_type::NULL_VALUE:
      return true;
    case element_type::STRING:
      return std::string_view(value).empty();
    case element_type::ARRAY:
      return array(value).size() == 0;
    case element_type::OBJECT:
      return object(value).size() == 0;
    default:
      return false;
  }
}

struct LeftOut {
  std::map<std::string, std::pair<std::size_t, std::size_t>> lists;  // shown, of
  std::size_t texts = 0;
};

class Writer {
 public:
  Writer(const FitOptions& options, const Measure& measure, JsonWriter& json, LeftOut& left_out)
      : options_(options), measure_(measure), json_(json), left_out_(left_out) {}

  // The members of a document but its rows.
  void WriteHead(object document) {
    for (const auto& [key, value] : document)
      if (key != options_.rows && key != options_.row_count) WriteMember(key, value, "", 1);
  }

  void WriteRow(element row) {
    if (row.type() != element_type::ARRAY) return Write(row, std::string(options_.rows), 1);
    // The cells of a row, none of which is left out.
    json_.BeginArray();
    for (const element cell : array(row)) Write(cell, std::string(options_.rows), 2);
    json_.EndArray();
  }

 private:
  void WriteMember(std::string_view key, element value, const std::string& path,
                   std::size_t depth) {
    const bool is_omitted =
        std::find(options_.omitted.begin(), options_.omitted.end(), key) != options_.omitted.end();
    if (is_omitted || IsEmpty(value)) return;
    const std::string own = path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
    const bool is_list = value.type() == element_type::ARRAY;
    if ((is_list && measure_.items == 0) ||
        (depth >= measure_.depth && (is_list || value.type() == element_type::OBJECT))) {
      left_out_.lists[own].second += is_list ? array(value).size() : 1;
      return;
    }
    json_.Key(key);
    Write(value, own, depth);
  }

  void Write(element value, const std::string& path, std::size_t depth) {
    switch (value.type()) {
      case element_type::OBJECT:
        json_.BeginObject();
        for (const auto& [key, member] : object(value)) WriteMember(key, member, path, depth + 1);
        json_.EndObject();
        return;
      case element_type::ARRAY:
        return WriteList(array(value), path, depth);
      case element_type::STRING: {
        const std::string text = Printable(value, true);
        const bool is_title = path == fmt::format("{}.title", options_.rows);
        const std::string cut =
            ShortenMiddle(text, is_title ? std::max(measure_.text, kTitle) : measure_.text);
        if (cut != text) ++left_out_.texts;
        json_.String(cut);
        return;
      }
      default:
        json_.Raw(simdjson::minify(value));
    }
  }

  void WriteList(array list, const std::string& path, std::size_t depth) {
    const std::size_t size = list.size();
    const std::size_t shown = std::min(size, measure_.items);
    if (shown < size) {
      auto& [sum_shown, sum] = left_out_.lists[path];
      sum_shown += shown;
      sum += size;
    }
    std::size_t count = 0;
    json_.BeginArray();
    for (const element item : list) {
      if (count++ == shown) break;
      Write(item, path + "[]", depth + 1);
    }
    json_.EndArray();
  }

  const FitOptions& options_;
  const Measure& measure_;
  JsonWriter& json_;
  LeftOut& left_out_;
};

struct Page {
  JsonWriter json;  // the document
  LeftOut left_out;
  std::size_t shown = 0;  // rows
  bool has_rows = false;
};

// A page with texts and lists of these measures: as many rows as fit.
Page MakePage(object document, const FitOptions& options, const Measure& head,
              const Measure& measure) {
  Page page;
  page.json.BeginObject();
  Writer(options, head, page.json, page.left_out).WriteHead(document);
  array rows;
  page.has_rows = !options.rows.empty() && document[options.rows].get(rows) == simdjson::SUCCESS;
  if (page.has_rows) {
    page.json.Key(options.rows).BeginArray();
    std::size_t index = options.row_count.empty() ? 0 : options.cursor;
    for (const element row : rows) {
      if (index++ < options.cursor) continue;
      if (options.limit > 0 && page.shown == options.limit) break;
      JsonWriter one;
      LeftOut left_out = page.left_out;
      Writer(options, measure, one, left_out).WriteRow(row);
      const bool fits = page.json.text().size() + one.text().size() + kReserve <= options.budget;
      if (!fits && page.shown > 0) break;
      page.json.Raw(one.text());
      page.left_out = std::move(left_out);
      ++page.shown;
      if (!fits) break;
    }
    page.json.EndArray();
  }
  page.json.EndObject();
  return page;
}

std::size_t RowCount(object document, const FitOptions& options) {
  std::uint64_t count = 0;
  if (!options.row_count.empty() && document[options.row_count].get(count) == simdjson::SUCCESS)
    return count;
  array rows;
  if (options.rows.empty() || document[options.rows].get(rows) != simdjson::SUCCESS) return 0;
  return rows.size();
}

// The fullest page that fits and has at least three rows, else all the rows that there are.
Page BestPage(object document, const FitOptions& options) {
  const std::size_t count = RowCount(document, options);
  const std::size_t wanted = std::min({count - std::min(count, options.cursor), std::size_t{3},
                                       options.limit == 0 ? std::size_t{3} : options.limit});
  Page page;
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    // What is not a row gets less first.
    const Measure& head = kMeasures[std::min(i + 1, kMeasures.size() - 1)];
    page = MakePage(document, options, count > 0 ? head : kMeasures[i], kMeasures[i]);
    const bool fits = page.json.text().size() + kReserve <= options.budget;
    // Fewer rows rather than rows without their lists.
    const bool is_short = kMeasures[i].items < 3;
    if (fits && page.shown >= (is_short ? std::min<std::size_t>(wanted, 1) : wanted)) break;
  }
  return page;
}

}  // namespace

JsonWriter Fit(element document, const FitOptions& options) {
  JsonWriter json;
  json.BeginObject().Key("answer");
  object root;
  if (document.get(root) != simdjson::SUCCESS) {
    json.BeginObject().EndObject().EndObject();
    return json;
  }
  Page page = BestPage(root, options);
  const std::size_t count = RowCount(root, options);
  const std::size_t end = options.cursor + page.shown;
  json.Raw(page.json.text());
  if (page.has_rows && page.shown < count)
    page.left_out.lists[std::string(options.rows)] = {page.shown, count};
  if (!page.left_out.lists.empty()) {
    json.Key("left_out").BeginArray();
    for (const auto& [where, numbers] : page.left_out.lists) {
      json.BeginObject().Key("where").String(where);
      json.Key("shown").Int(static_cast<std::int64_t>(numbers.first));
      json.Key("of").Int(static_cast<std::int64_t>(numbers.second)).EndObject();
    }
    json.EndArray();
  }
  if (page.left_out.texts > 0)
    json.Key("texts_cut").Int(static_cast<std::int64_t>(page.left_out.texts));
  if (page.has_rows && end < count) json.Key("next_cursor").String(fmt::format("{}", end));
  if (!page.left_out.lists.empty() || page.left_out.texts > 0)
    json.Key("more").String("further rows: cursor; whole texts and lists: a larger budget");
  json.EndObject();
  return json;
}

}  // namespace tlparse
