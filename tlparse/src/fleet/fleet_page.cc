#include "fleet/fleet_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <span>

#include "base/human_duration.h"
#include "base/printable.h"
#include "fleet/fleet_chart.h"
#include "report/tree/html.h"

namespace tlparse {
namespace {

// Colours of a light and a dark page; the browser chooses.
constexpr std::string_view kStyle =
    ":root{color-scheme:light dark;--dot:#1f6feb;--odd:#c0392b;--line:#8888}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;"
    "background:Canvas;color:CanvasText}h1,p{overflow-wrap:anywhere}"
    "h2{font-size:1.1rem;margin:1.5rem 0 0}table{border-collapse:collapse;margin:1rem 0}"
    "td,th{padding:.2rem .8rem .2rem 0;text-align:left;border-bottom:1px solid var(--line);"
    "overflow-wrap:anywhere;min-width:5.5rem}"
    "td.n,th.n{text-align:right;overflow-wrap:normal;min-width:0}"
    "td.r{white-space:nowrap}svg{width:100%;height:auto}circle{fill:var(--dot)}"
    "circle.odd{fill:var(--odd)}a:focus circle{stroke:currentColor;stroke-width:2}"
    "text{font:12px system-ui,sans-serif;fill:currentColor}line{stroke:var(--line)}";

// Text of runs, with control characters and changes of direction as visible escapes.
std::string Shown(std::string_view text) { return Html(Printable(text)); }

std::string DotLabel(const std::string& day, const std::string& run) {
  return fmt::format("{}, {}", day, run);
}

std::string Page(std::string_view title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head>\n<body><p><a "
      "href=\"/\">All jobs</a></p><h1>{0}</h1>\n{2}</body></html>\n",
      Shown(title), kStyle, body);
}

// For a value in the query of a URL.
std::string Encoded(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
  std::string encoded;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string TableCell(const std::string& text, bool is_number) {
  return fmt::format("<td{}>{}</td>", is_number ? " class=\"n\"" : "", Shown(text));
}

std::string RunCell(const std::string& run_id) {
  return fmt::format("<td class=\"r\"><a href=\"/run/{0}\">{0}</a></td>", Html(run_id));
}

std::string CellWithLink(const std::string& target, const std::string& text) {
  return fmt::format("<td><a href=\"{}\">{}</a></td>", Html(target), Shown(text));
}

// A column of a table of the page, made from one of a section.
struct PageColumn {
  enum class Format { kText, kNumber, kDuration, kRun, kFunction };
  std::string_view name;  // of the section's column
  std::string_view heading;
  Format format = Format::kText;
  bool IsNumber() const { return format == Format::kNumber || format == Format::kDuration; }
};

std::string CellOf(const PageColumn& column, const std::string& job, const std::string& value) {
  using Format = PageColumn::Format;
  if (value.empty()) return TableCell("", column.IsNumber());
  switch (column.format) {
    case Format::kDuration:
      return TableCell(HumanMicroseconds(std::strtod(value.c_str(), nullptr)), true);
    case Format::kRun:
      return RunCell(value);
    case Format::kFunction:
      return CellWithLink(fmt::format("/function?job={}&name={}", Encoded(job), Encoded(value)),
                          value);
    default:
      return TableCell(value, column.IsNumber());
  }
}

std::string SectionTable(const FleetSection& section, std::string_view heading,
                         std::span<const PageColumn> columns, const std::string& job) {
  if (section.rows.empty()) return {};
  std::string table = fmt::format("<h2>{}</h2>\n<table><tr>", Html(heading));
  std::vector<std::size_t> places;
  for (const PageColumn& column : columns) {
    const auto place =
        std::find_if(section.columns.begin(), section.columns.end(),
                     [&](const FleetColumnOfAnswer& one) { return one.name == column.name; });
    places.push_back(static_cast<std::size_t>(place - section.columns.begin()));
    table +=
        fmt::format("<th{}>{}</th>", column.IsNumber() ? " class=\"n\"" : "", Html(column.heading));
  }
  table += "</tr>\n";
  for (const auto& row : section.rows) {
    table += "<tr>";
    for (std::size_t i = 0; i < columns.size(); ++i)
      table += CellOf(columns[i], job, row.at(places[i]).value_or(""));
    table += "</tr>\n";
  }
  return table + "</table>\n";
}

using Format = PageColumn::Format;
constexpr PageColumn kFunctionColumns[] = {{"function", "Function", Format::kFunction},
                                           {"compiles", "Compiles", Format::kNumber},
                                           {"runs", "Runs", Format::kNumber},
                                           {"median_us", "Median", Format::kDuration},
                                           {"p95_us", "95th percentile", Format::kDuration},
                                           {"total_s", "Total, s", Format::kNumber}};
constexpr PageColumn kJumpColumns[] = {{"day", "Day"},
                                       {"run_before", "Last run before", Format::kRun},
                                       {"run_id", "First run after", Format::kRun},
                                       {"before_us", "Median before", Format::kDuration},
                                       {"after_us", "Median after", Format::kDuration},
                                       {"ratio", "Ratio", Format::kNumber}};
constexpr PageColumn kChangeColumns[] = {{"run_id", "Since run", Format::kRun},
                                         {"kind", "Kind"},
                                         {"text", "What differs"},
                                         {"before", "Before"},
                                         {"after", "After"}};

std::string Notes(const FleetAnswer& answer) {
  std::string html;
  for (const std::string& note : answer.notes) html += fmt::format("<p>{}</p>\n", Shown(note));
  return html;
}

std::string RunTable(const std::vector<TrendRun>& runs) {
  std::string table =
      "<h2>Runs</h2>\n<table><tr><th>Run</th><th>Day</th><th>Name</th><th "
      "class=\"n\">Ranks</th><th "
      "class=\"n\">Compile time, s</th><th class=\"n\">Cache hit rate</th><th "
      "class=\"n\">Recompiles</th><th class=\"n\">Graph breaks</th></tr>\n";
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    table +=
        "<tr>" + RunCell(run->run_id) + TableCell(run->day, false) +
        TableCell(run->run_name, false) + TableCell(std::to_string(run->ranks), true) +
        TableCell(run->compile_s ? fmt::format("{:.3f}", *run->compile_s) : "not known", true) +
        TableCell(run->hit_rate ? fmt::format("{:.1f} %", *run->hit_rate * 100) : "no lookups",
                  true) +
        TableCell(std::to_string(run->recompiles), true) +
        TableCell(std::to_string(run->graph_breaks), true) + "</tr>\n";
  }
  return table + "</table>\n";
}

// Charts of values that each run has once.
std::string JobCharts(const std::vector<TrendRun>& runs) {
  std::vector<RunDay> days;
  for (const TrendRun& run : runs) days.push_back({run.day, run.start_us});
  const std::vector<double> places = PlacesInTime(days);
  const auto dots = [&](const std::function<std::optional<double>(const TrendRun&)>& value) {
    std::vector<ChartDot> result;
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (const std::optional<double> known = value(runs[i]))
        result.push_back(
            {runs[i].run_id, DotLabel(runs[i].day, runs[i].run_name), places[i], *known});
    return result;
  };
  return Chart("Compile time of the slowest process",
               dots([](const TrendRun& run) { return run.compile_s; }), ChartUnit::kSeconds) +
         Chart("Cache hit rate", dots([](const TrendRun& run) { return run.hit_rate; }),
               ChartUnit::kShare) +
         Chart("Recompiles of the process with most of them", dots([](const TrendRun& run) {
                 return std::optional(static_cast<double>(run.recompiles));
               }),
               ChartUnit::kCount) +
         Chart("Graph breaks of the process with most of them", dots([](const TrendRun& run) {
                 return std::optional(static_cast<double>(run.graph_breaks));
               }),
               ChartUnit::kCount);
}

// `time`: of one function of one job.
std::string TimeChart(const FleetAnswer& time) {
  std::set<std::string> jumps;
  const FleetSection* runs = nullptr;
  for (const FleetSection& section : time.sections) {
    if (section.name == "runs") runs = &section;
    if (section.name != "jumps") continue;
    for (const auto& row : section.rows) jumps.insert(row[2].value_or(""));
  }
  if (runs == nullptr) return {};
  std::vector<RunDay> days;
  for (const auto& row : runs->rows)
    days.push_back({row[1].value_or(""), std::strtoll(row[6].value_or("0").c_str(), nullptr, 10)});
  const std::vector<double> places = PlacesInTime(days);
  std::vector<ChartDot> dots;
  for (std::size_t i = 0; i < runs->rows.size(); ++i) {
    const auto& row = runs->rows[i];
    const std::string run = row[2].value_or("");
    dots.push_back({run, DotLabel(days[i].day, "run " + run), places[i],
                    std::strtod(row[4].value_or("0").c_str(), nullptr) / 1e6,
                    jumps.count(run) > 0});
  }
  return Chart(jumps.empty() ? "Median compile time"
                             : "Median compile time; red: the run at which it jumped",
               dots, ChartUnit::kSeconds);
}

}  // namespace

std::string JobsPage(const std::vector<FleetJob>& jobs) {
  std::string body;
  if (jobs.empty()) {
    body = "<p>No run was pushed since --since.</p>\n";
  } else {
    body =
        "<table><tr><th>Job</th><th class=\"n\">Runs</th><th class=\"n\">Ranks</th><th>Last "
        "day</th></tr>\n";
    for (const FleetJob& job : jobs)
      body += "<tr>" + CellWithLink("/job?name=" + Encoded(job.name), job.name) +
              TableCell(std::to_string(job.runs), true) +
              TableCell(std::to_string(job.ranks), true) + TableCell(job.last_day, false) +
              "</tr>\n";
    body += "</table>\n";
  }
  return Page("Fleet", body);
}

std::string JobPage(const std::string& job, const std::vector<TrendRun>& runs, bool has_more_runs,
                    const FleetAnswer& functions) {
  std::string body = "<p>A dot is a run; it opens that run.";
  if (has_more_runs) body += fmt::format(" Only the latest {} runs are shown.", runs.size());
  body += "</p>\n" + JobCharts(runs);
  for (const FleetSection& section : functions.sections)
    body += SectionTable(section, "Functions that took longest", kFunctionColumns, job);
  return Page("Job " + job, body + RunTable(runs));
}

std::string FunctionPage(const std::string& job, const std::string& function,
                         const FleetAnswer& time) {
  std::string body =
      fmt::format("<p><a href=\"/job?name={}\">Job {}</a></p>\n", Encoded(job), Shown(job));
  body += Notes(time) + TimeChart(time);
  for (const FleetSection& section : time.sections) {
    if (section.name == "jumps") body += SectionTable(section, "Jumps", kJumpColumns, job);
    if (section.name == "changes")
      body += SectionTable(section, "What differs from the last run before", kChangeColumns, job);
  }
  return Page(function, body);
}

std::string ErrorPage(std::string_view message) {
  return Page("This cannot be shown", fmt::format("<p>{}</p>\n", Shown(message)));
}

}  // namespace tlparse
