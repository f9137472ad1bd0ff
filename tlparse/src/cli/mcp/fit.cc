#include "cli/mcp/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/mcp/fit_writer.h"

namespace tlparse {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// From all to little: what lies deep goes before what a row says itself.
constexpr std::array<FitMeasure, 16> kMeasures = {{{4000, 32, 32, 99},
                                                   {1000, 12, 12, 99},
                                                   {400, 12, 12, 99},
                                                   {240, 6, 6, 8},
                                                   {300, 4, 4, 5},
                                                   {200, 3, 3, 5},
                                                   {200, 3, 2, 5},
                                                   {160, 3, 1, 5},
                                                   {100, 2, 1, 5},
                                                   {160, 3, 2, 4},
                                                   {100, 3, 1, 4},
                                                   {60, 2, 1, 4},
                                                   {100, 3, 0, 4},
                                                   {60, 2, 0, 4},
                                                   {40, 1, 0, 4},
                                                   {40, 0, 0, 2}}};

struct Page {
  JsonWriter json;  // the document
  LeftOut left_out;
  std::size_t shown = 0;  // rows
  bool has_rows = false;
};

// What is paged, and what stands around it.
struct Paged {
  object head;
  std::vector<element> rows;  // from the cursor on
  std::size_t count = 0;      // of all
  bool has_rows = false;
};

// What follows the document: what is not in it, and how to get it.
std::string TextAround(const LeftOut& left_out, const FitOptions& options, const Paged& paged,
                       std::size_t shown) {
  const std::size_t end = options.cursor + shown;
  LeftOut all = left_out;
  if (paged.has_rows && shown < paged.count)
    all.lists[std::string(options.rows)] = {shown, paged.count};
  JsonWriter json;
  json.BeginObject();
  if (!all.lists.empty()) {
    json.Key("left_out").BeginArray();
    for (const auto& [where, numbers] : all.lists) {
      json.BeginObject().Key("where").String(where);
      json.Key("shown").Int(static_cast<std::int64_t>(numbers.first));
      json.Key("of").Int(static_cast<std::int64_t>(numbers.second)).EndObject();
    }
    json.EndArray();
  }
  if (all.texts > 0) json.Key("texts_cut").Int(static_cast<std::int64_t>(all.texts));
  if (paged.has_rows && end < paged.count) json.Key("next_cursor").String(fmt::format("{}", end));
  if (!all.lists.empty() || all.texts > 0)
    json.Key("more").String(
        "further rows: cursor; the whole of another list: list, its name; whole texts: budget");
  json.EndObject();
  std::string text = json.Take();
  return text == "{}" ? "}" : "," + text.substr(1);
}

constexpr std::string_view kBegin = R"({"answer":)";

std::size_t SizeOf(const Page& page, const FitOptions& options, const Paged& paged) {
  return kBegin.size() + page.json.text().size() +
         TextAround(page.left_out, options, paged, page.shown).size();
}

// A page with texts and lists of these measures: as many rows as fit.
Page MakePage(const Paged& paged, const FitOptions& options, const FitMeasure& head,
              const FitMeasure& measure) {
  Page page;
  page.json.BeginObject();
  FitWriter(options, head, page.json, page.left_out).WriteHead(paged.head);
  page.has_rows = paged.has_rows;
  if (page.has_rows) {
    page.json.Key(options.list.empty() ? options.rows : "items").BeginArray();
    for (const element row : paged.rows) {
      if (options.limit > 0 && page.shown == options.limit) break;
      JsonWriter one;
      LeftOut left_out = page.left_out;
      FitWriter(options, measure, one, left_out).WriteRow(row);
      constexpr std::size_t kClosing = 3;  // of the list, of the document, a comma
      const std::size_t size = kBegin.size() + page.json.text().size() + one.text().size() +
                               kClosing +
                               TextAround(left_out, options, paged, page.shown + 1).size();
      const bool fits = size <= options.budget;
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

// The measures of a page, and what it has.
struct Fitted {
  FitMeasure head, rows;
  Page page;
};

// The fullest page that fits and has at least three rows, else all the rows that there are.
Fitted BestPage(const Paged& paged, const FitOptions& options) {
  const std::size_t wanted = std::min(
      {paged.rows.size(), std::size_t{3}, options.limit == 0 ? std::size_t{3} : options.limit});
  Fitted fitted;
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    // What is not a row gets less first.
    fitted.rows = kMeasures[i];
    fitted.head = paged.count > 0 ? kMeasures[std::min(i + 1, kMeasures.size() - 1)] : fitted.rows;
    fitted.page = MakePage(paged, options, fitted.head, fitted.rows);
    // Fewer rows rather than rows without their lists.
    const bool is_short = kMeasures[i].items < 3 || kMeasures[i].nested == 0;
    if (SizeOf(fitted.page, options, paged) <= options.budget &&
        fitted.page.shown >= (is_short ? std::min<std::size_t>(wanted, 1) : wanted))
      break;
  }
  return fitted;
}

// Raises one measure as long as the page fits and has no fewer rows.
void Raise(const Paged& paged, const FitOptions& options, std::size_t FitMeasure::*what,
           std::initializer_list<std::size_t> values, FitMeasure Fitted::*of, Fitted& fitted) {
  for (const std::size_t value : values) {
    if (value <= fitted.*of.*what) return;
    Fitted larger = {fitted.head, fitted.rows, {}};
    larger.*of.*what = value;
    larger.page = MakePage(paged, options, larger.head, larger.rows);
    if (SizeOf(larger.page, options, paged) > options.budget ||
        larger.page.shown < fitted.page.shown)
      continue;
    fitted = std::move(larger);
    return;
  }
}

// What is left of the budget goes to the rows, then to what stands around them.
void FillUp(const Paged& paged, const FitOptions& options, Fitted& fitted) {
  for (FitMeasure Fitted::*const of : {&Fitted::rows, &Fitted::head}) {
    Raise(paged, options, &FitMeasure::text, {4000, 2000, 1000, 600, 400, 300, 240, 160, 100}, of,
          fitted);
    Raise(paged, options, &FitMeasure::depth, {99, 8, 6, 5, 4}, of, fitted);
    Raise(paged, options, &FitMeasure::nested, {32, 24, 16, 12, 8, 6, 5, 4, 3, 2, 1}, of, fitted);
    Raise(paged, options, &FitMeasure::items, {32, 24, 16, 12, 8, 6, 5, 4, 3, 2, 1}, of, fitted);
  }
}

std::size_t RowCount(object document, const FitOptions& options, std::size_t of_rows) {
  std::uint64_t count = 0;
  const bool is_said = options.list.empty() && !options.row_count.empty() &&
                       document[options.row_count].get(count) == simdjson::SUCCESS;
  return is_said ? count : of_rows;
}

Paged PagedOf(element document, const FitOptions& options) {
  Paged paged;
  if (document.get(paged.head) != simdjson::SUCCESS) return paged;
  array rows;
  if (!options.list.empty()) {
    paged.rows = ItemsOfList(document, options.list).value_or(std::vector<element>());
    paged.has_rows = true;
  } else if (!options.rows.empty() && paged.head[options.rows].get(rows) == simdjson::SUCCESS) {
    paged.rows.assign(rows.begin(), rows.end());
    paged.has_rows = true;
  }
  paged.count = RowCount(paged.head, options, paged.rows.size());
  // A document with a count has its rows from the cursor on.
  const bool is_skipped = options.list.empty() && !options.row_count.empty();
  const std::size_t skipped = is_skipped ? 0 : std::min(options.cursor, paged.rows.size());
  paged.rows.erase(paged.rows.begin(), paged.rows.begin() + static_cast<std::ptrdiff_t>(skipped));
  return paged;
}

}  // namespace

Result<std::string> Fit(element document, const FitOptions& given) {
  FitOptions options = given;
  simdjson::dom::parser parser;
  Paged paged = PagedOf(document, options);
  if (!options.list.empty()) {
    if (!ItemsOfList(document, options.list)) {
      std::string names;
      for (const auto& [key, value] : paged.head)
        if (value.is_array()) names += fmt::format("{}{}", names.empty() ? "" : ", ", key);
      return Fail(ErrorCode::kUsage,
                  fmt::format("there is no list '{}' in this answer; it has {}, and those that "
                              "left_out names",
                              options.list, names.empty() ? "none" : names));
    }
    JsonWriter head;
    head.BeginObject().Key("list").String(options.list).EndObject();
    if (parser.parse(head.Take()).get(paged.head) != simdjson::SUCCESS)
      return Fail(ErrorCode::kInternal, "the name of the list is no JSON");
    options.rows = options.list;
    options.row_count = {};
  }
  Fitted fitted = BestPage(paged, options);
  FillUp(paged, options, fitted);
  const std::string envelope = TextAround(fitted.page.left_out, options, paged, fitted.page.shown);
  return fmt::format("{}{}{}", kBegin, fitted.page.json.text(), envelope);
}

}  // namespace tlparse
