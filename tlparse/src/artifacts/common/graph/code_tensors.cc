#include "artifacts/common/graph/code_tensors.h"

#include <algorithm>

#include "artifacts/common/text/quotes.h"
#include "base/json_writer.h"

namespace tlparse {

namespace {

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string_view DtypeOf(std::string_view text) {
  constexpr std::string_view kTorch = "torch.";
  return text.starts_with(kTorch) ? text.substr(kTorch.size()) : std::string_view();
}

}  // namespace

std::vector<std::string_view> SplitArguments(std::string_view text, std::size_t* length) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  std::size_t depth = 0;
  QuoteScanner quotes;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (quotes.IsInString(text, at)) continue;
    const char c = text[at];
    if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth == 0) break;
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(Trim(text.substr(begin, at - begin)));
      begin = at + 1;
    }
  }
  if (length != nullptr) *length = at < text.size() ? at : std::string_view::npos;
  const std::size_t end = std::min(at, text.size());
  if (const std::string_view last =
          Trim(text.substr(std::min(begin, end), end - std::min(begin, end)));
      !last.empty()) {
    parts.push_back(last);
  }
  return parts;
}

std::string ShapeJson(std::string_view tuple) {
  if (tuple.size() < 2 || (tuple.front() != '(' && tuple.front() != '[')) return {};
  std::string json = "[";
  for (const std::string_view part : SplitArguments(tuple.substr(1))) {
    if (json.size() > 1) json += ", ";
    if (part.size() <= 18 && part.find_first_not_of("0123456789") == std::string_view::npos) {
      json += part;
      continue;
    }
    AppendJsonString(part, json);
  }
  return json + "]";
}

void CodeTensors::Note(std::string_view line) {
  constexpr std::string_view kSizeStride = "assert_size_stride(";
  constexpr std::string_view kGrouped = "assert_size_stride_grouped((";
  constexpr std::string_view kMetadata = "assert_tensor_metadata(";
  if (line.starts_with(kSizeStride)) {
    const std::vector<std::string_view> parts = SplitArguments(line.substr(kSizeStride.size()));
    if (parts.size() >= 2) tensors_[parts[0]].shape = parts[1];
  } else if (line.starts_with(kGrouped)) {
    const std::vector<std::string_view> parts = SplitArguments(line.substr(kGrouped.size() - 1));
    if (parts.size() < 2 || parts[0].size() < 2 || parts[1].size() < 2) return;
    const std::vector<std::string_view> names = SplitArguments(parts[0].substr(1));
    const std::vector<std::string_view> shapes = SplitArguments(parts[1].substr(1));
    for (std::size_t index = 0; index < std::min(names.size(), shapes.size()); ++index)
      tensors_[names[index]].shape = shapes[index];
  } else if (line.starts_with(kMetadata)) {
    const std::vector<std::string_view> parts = SplitArguments(line.substr(kMetadata.size()));
    if (parts.size() >= 4) tensors_[parts[0]] = {parts[1], DtypeOf(parts[3])};
  } else if (const std::size_t equals = line.find(" = "); equals != std::string_view::npos) {
    NoteAssignment(line.substr(0, equals), line.substr(equals + 3));
  }
}

void CodeTensors::NoteAssignment(std::string_view name, std::string_view value) {
  if (name.find_first_of(" ,.([") != std::string_view::npos) return;
  if (value.starts_with("empty_strided")) {  // empty_strided_cuda((8, 16), (16, 1), torch.float32)
    const std::size_t open = value.find('(');
    if (open == std::string_view::npos) return;
    const std::vector<std::string_view> parts = SplitArguments(value.substr(open + 1));
    if (parts.size() >= 3) tensors_[name] = {parts[0], DtypeOf(parts[2])};
    return;
  }
  const TensorInfo info = Of(value.substr(0, value.find(';')));
  if (!info.shape.empty()) tensors_[name] = info;
}

TensorInfo CodeTensors::Of(std::string_view expression) const {
  constexpr std::string_view kReinterpret = "reinterpret_tensor(";
  expression = Trim(expression);
  if (expression.starts_with(kReinterpret)) {
    const std::vector<std::string_view> parts =
        SplitArguments(expression.substr(kReinterpret.size()));
    if (parts.size() < 2) return {};
    const auto base = tensors_.find(parts[0]);
    return {parts[1], base == tensors_.end() ? std::string_view() : base->second.dtype};
  }
  const auto found = tensors_.find(expression);
  return found == tensors_.end() ? TensorInfo() : found->second;
}

}  // namespace tlparse
