#include "fleet/fleet_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>

#include "report/tree/html.h"

namespace tlparse {
namespace {

// Colours of a light and a dark page; the browser chooses.
constexpr std::string_view kStyle =
    ":root{color-scheme:light dark;--dot:#1f6feb;--odd:#c0392b;--line:#8888}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .8rem .2rem "
    "0;text-align:left;border-bottom:1px solid "
    "var(--line)}td.n,th.n{text-align:right}svg{width:100%;height:auto}circle{fill:var(--dot)}"
    "circle.odd{fill:var(--odd)}a:focus circle{stroke:currentColor;stroke-width:2}text{font:12px "
    "system-ui,sans-serif;fill:currentColor}line{stroke:var(--line)}h2{font-size:1.1rem;margin:1."
    "5rem 0 0}";

std::string Page(std::string_view title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head>\n<body><p><a "
      "href=\"/\">All jobs</a></p><h1>{0}</h1>\n{2}</body></html>\n",
      Html(title), kStyle, body);
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

struct Dot {
  std::string run_id, day;
  double value = 0;
  bool is_odd = false;
};

struct Scale {
  double largest = 1;
  std::string unit;  // behind a value
  std::string Label(double value) const { return fmt::format("{:.4g}{}", value, unit); }
};

// A chart from 0 to the largest value, the runs side by side in their order.
std::string Chart(const std::string& heading, const std::vector<Dot>& dots, Scale scale) {
  if (dots.empty()) return {};
  constexpr double kWidth = 1000, kHeight = 170, kLeft = 70, kTop = 12, kBottom = 25;
  for (const Dot& dot : dots) scale.largest = std::max(scale.largest, dot.value);
  const auto y = [&](double value) {
    return kHeight - kBottom - value / scale.largest * (kHeight - kBottom - kTop);
  };
  std::string svg =
      fmt::format("<h2>{0}</h2><svg viewBox=\"0 0 {1} {2}\" role=\"img\" aria-label=\"{0}\">",
                  Html(heading), kWidth, kHeight);
  for (const double value : {0.0, scale.largest / 2, scale.largest})
    svg += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>",
        kLeft, kWidth, y(value), kLeft - 6, y(value) + 4, Html(scale.Label(value)));
  const double step = (kWidth - kLeft - 20) / static_cast<double>(dots.size());
  for (std::size_t i = 0; i < dots.size(); ++i)
    svg += fmt::format(
        "<a href=\"/run/{}\"><circle{} cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}, run {}: "
        "{}</title></circle></a>",
        Html(dots[i].run_id), dots[i].is_odd ? " class=\"odd\"" : "",
        kLeft + 10 + step * (static_cast<double>(i) + 0.5), y(dots[i].value), Html(dots[i].day),
        Html(dots[i].run_id), Html(scale.Label(dots[i].value)));
  svg +=
      fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", kLeft, kHeight - 6, Html(dots.front().day));
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>\n", kWidth,
                     kHeight - 6, Html(dots.back().day));
  return svg;
}

std::string TableCell(const std::string& text, bool is_number) {
  return fmt::format("<td{}>{}</td>", is_number ? " class=\"n\"" : "", Html(text));
}

// A section as a table; `link` gives the target of the first cell ("": none).
std::string SectionTable(const FleetSection& section,
                         const std::function<std::string(std::size_t row)>& link) {
  if (section.rows.empty()) return {};
  std::string heading = section.name;
  std::replace(heading.begin(), heading.end(), '_', ' ');
  std::string table = fmt::format("<h2>{}</h2><table><tr>", Html(heading));
  const auto is_number = [&](std::size_t column) {
    return section.columns[column].kind != FleetColumnOfAnswer::Kind::kText;
  };
  for (std::size_t i = 0; i < section.columns.size(); ++i)
    table += fmt::format("<th{}>{}</th>", is_number(i) ? " class=\"n\"" : "",
                         Html(section.columns[i].name));
  table += "</tr>\n";
  for (std::size_t row = 0; row < section.rows.size(); ++row) {
    table += "<tr>";
    const std::string target = link(row);
    for (std::size_t i = 0; i < section.columns.size(); ++i) {
      const std::string text = section.rows[row][i].value_or("");
      if (i == 0 && !target.empty()) {
        table += fmt::format("<td><a href=\"{}\">{}</a></td>", Html(target), Html(text));
      } else {
        table += TableCell(text, is_number(i));
      }
    }
    table += "</tr>\n";
  }
  return table + "</table>\n";
}

std::string Notes(const FleetAnswer& answer) {
  std::string html;
  for (const std::string& note : answer.notes) html += fmt::format("<p>{}</p>\n", Html(note));
  return html;
}

std::string RunTable(const std::vector<TrendRun>& runs) {
  std::string table =
      "<h2>runs</h2><table><tr><th>run</th><th>day</th><th>name</th><th class=\"n\">ranks</th><th "
      "class=\"n\">compile s</th><th class=\"n\">hit rate</th><th class=\"n\">recompiles</th><th "
      "class=\"n\">graph breaks</th></tr>\n";
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    table +=
        fmt::format("<tr><td><a href=\"/run/{0}\">{0}</a></td>", Html(run->run_id)) +
        TableCell(run->day, false) + TableCell(run->run_name, false) +
        TableCell(std::to_string(run->ranks), true) +
        TableCell(run->compile_s ? fmt::format("{:.3f}", *run->compile_s) : "not known", true) +
        TableCell(run->hit_rate ? fmt::format("{:.3f}", *run->hit_rate) : "no lookups", true) +
        TableCell(std::to_string(run->recompiles), true) +
        TableCell(std::to_string(run->graph_breaks), true) + "</tr>\n";
  }
  return table + "</table>\n";
}

}  // namespace

std::string JobsPage(const std::vector<FleetJob>& jobs) {
  std::string body;
  if (jobs.empty()) {
    body = "<p>No run was pushed since --since.</p>\n";
  } else {
    body =
        "<table><tr><th>job</th><th class=\"n\">runs</th><th class=\"n\">ranks</th><th>last "
        "day</th></tr>\n";
    for (const FleetJob& job : jobs)
      body += fmt::format("<tr><td><a href=\"/job?name={}\">{}</a></td>", Encoded(job.name),
                          Html(job.name)) +
              TableCell(std::to_string(job.runs), true) +
              TableCell(std::to_string(job.ranks), true) + TableCell(job.last_day, false) +
              "</tr>\n";
    body += "</table>\n";
  }
  return Page("Fleet", body);
}

std::string JobPage(const std::string& job, const std::vector<TrendRun>& runs,
                    const FleetAnswer& functions) {
  const auto dots = [&](const std::function<std::optional<double>(const TrendRun&)>& value) {
    std::vector<Dot> result;
    for (const TrendRun& run : runs)
      if (const std::optional<double> known = value(run))
        result.push_back({run.run_id, run.day, *known, false});
    return result;
  };
  std::string body = "<p>A dot is a run; it opens that run.</p>\n";
  body += Chart("Compile time of the slowest process",
                dots([](const TrendRun& run) { return run.compile_s; }), {1e-6, " s"});
  body += Chart("Cache hit rate", dots([](const TrendRun& run) { return run.hit_rate; }), {1, ""});
  body += Chart("Recompiles of the process with most of them", dots([](const TrendRun& run) {
                  return std::optional(static_cast<double>(run.recompiles));
                }),
                {1, ""});
  body += Chart("Graph breaks of the process with most of them", dots([](const TrendRun& run) {
                  return std::optional(static_cast<double>(run.graph_breaks));
                }),
                {1, ""});
  for (const FleetSection& section : functions.sections) {
    // The columns job and function come first; the job is this one.
    FleetSection shown = section;
    shown.columns.erase(shown.columns.begin());
    for (auto& row : shown.rows) row.erase(row.begin());
    body += SectionTable(shown, [&](std::size_t row) {
      return fmt::format("/function?job={}&name={}", Encoded(job),
                         Encoded(shown.rows[row][0].value_or("")));
    });
  }
  return Page("Job " + job, body + RunTable(runs));
}

std::string FunctionPage(const std::string& job, const std::string& function,
                         const FleetAnswer& time) {
  std::string body =
      fmt::format("<p><a href=\"/job?name={}\">Job {}</a></p>\n", Encoded(job), Html(job));
  body += Notes(time);
  std::vector<std::string> jumps;
  for (const FleetSection& section : time.sections)
    if (section.name == "jumps")
      for (const auto& row : section.rows) jumps.push_back(row[2].value_or(""));
  for (const FleetSection& section : time.sections) {
    if (section.name == "runs") {
      std::vector<Dot> dots;
      for (const auto& row : section.rows) {
        const std::string run = row[2].value_or("");
        dots.push_back({run, row[1].value_or(""),
                        std::strtod(row[4].value_or("0").c_str(), nullptr) / 1e6,
                        std::find(jumps.begin(), jumps.end(), run) != jumps.end()});
      }
      body += Chart("Median compile time; red: the run at which it jumped", dots, {1e-6, " s"});
    } else {
      body += SectionTable(section, [](std::size_t) { return std::string(); });
    }
  }
  return Page(function, body);
}

std::string ErrorPage(std::string_view message) {
  return Page("This cannot be shown", fmt::format("<p>{}</p>\n", Html(message)));
}

}  // namespace tlparse
