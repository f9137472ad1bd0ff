#include "torch/package_weights.h"

#include <cstdint>
#include <map>
#include <string_view>

#include "core/json_reader.h"

namespace libtrace {
namespace {

constexpr std::string_view kWeights = "data/weights/";
constexpr uint64_t kMaxPickleSize = uint64_t{16} << 20;

struct StorageType {
  std::string_view class_name, dtype;
  uint64_t size_bytes;
};
// torch.save names the class of the storage.
constexpr StorageType kStorageTypes[] = {{"FloatStorage", "float32", 4},
                                         {"DoubleStorage", "float64", 8},
                                         {"HalfStorage", "float16", 2},
                                         {"BFloat16Storage", "bfloat16", 2},
                                         {"LongStorage", "int64", 8},
                                         {"IntStorage", "int32", 4},
                                         {"ShortStorage", "int16", 2},
                                         {"CharStorage", "int8", 1},
                                         {"ByteStorage", "uint8", 1},
                                         {"BoolStorage", "bool", 1},
                                         {"ComplexFloatStorage", "complex64", 8},
                                         {"ComplexDoubleStorage", "complex128", 16}};

// torch/_export/serde/schema.py, ScalarType.
struct SerializedType {
  int64_t number;
  std::string_view dtype;
  uint64_t size_bytes;
};
constexpr SerializedType kSerializedTypes[] = {{1, "uint8", 1},
                                               {2, "int8", 1},
                                               {3, "int16", 2},
                                               {4, "int32", 4},
                                               {5, "int64", 8},
                                               {6, "float16", 2},
                                               {7, "float32", 4},
                                               {8, "float64", 8},
                                               {9, "complex32", 4},
                                               {10, "complex64", 8},
                                               {11, "complex128", 16},
                                               {12, "bool", 1},
                                               {13, "bfloat16", 2},
                                               {28, "uint16", 2},
                                               {29, "float8_e4m3fn", 1},
                                               {30, "float8_e5m2", 1},
                                               {31, "float8_e4m3fnuz", 1},
                                               {32, "float8_e5m2fnuz", 1},
                                               {33, "float8_e8m0fnu", 1},
                                               {34, "uint32", 4},
                                               {35, "uint64", 8}};

// One file of `data/weights/`: an archive of torch.save with one tensor, or the bytes of a storage.
struct WeightFile {
  uint64_t ordinal = 0;     // from 1
  uint64_t size_bytes = 0;  // of the storage; 0: not known
  std::string dtype{}, device{};
  uint64_t item_size_bytes = 0;  // 0: not known
};

void ReadPickle(std::string_view pickle, WeightFile& file) {
  for (const StorageType& type : kStorageTypes) {
    const std::string global = "ctorch\n" + std::string(type.class_name) + "\n";
    if (pickle.find(global) == std::string_view::npos) continue;
    file.dtype = type.dtype;
    file.item_size_bytes = type.size_bytes;
  }
  // A text is X, its length in four bytes, its characters.
  for (const std::string_view device : {"cpu", "cuda:", "xpu:", "mps"}) {
    for (size_t at = pickle.find(device); at != std::string_view::npos;
         at = pickle.find(device, at + 1)) {
      if (at < 5 || pickle[at - 5] != 'X') continue;
      file.device = pickle.substr(at, static_cast<unsigned char>(pickle[at - 4]));
      return;
    }
  }
}

WeightFile ReadWeightFile(ZipFile& zip, const ZipFile::Member& member,
                          std::vector<std::string>& unread) {
  WeightFile file;
  ZipFile saved;
  if (!saved.OpenWithin(zip, member)) {
    if (member.is_stored) unread.push_back(member.name);
    return file;
  }
  for (const ZipFile::Member& inner : saved.members()) {
    const std::string_view name = inner.name;
    if (name.ends_with("/data.pkl")) {
      if (const auto pickle = saved.Read(inner, kMaxPickleSize)) ReadPickle(*pickle, file);
    } else if (name.find("/data/") != std::string_view::npos) {
      file.size_bytes += inner.size_bytes;
    }
  }
  return file;
}

struct Entry {
  std::string name, file;
  std::vector<int64_t> shape;
  // Of an exported program, whose list says them.
  bool is_raw = false;
  std::string dtype, device;
  uint64_t item_size_bytes = 0;
};

// Empty: of another shape.
std::vector<Entry> ReadConfig(std::string_view text) {
  JsonReader json(text);
  std::vector<Entry> entries;
  const bool is_whole = json.Object([&](std::string_view name) {
    Entry& entry = entries.emplace_back();
    entry.name = JsonReader::Decoded(name);
    int index = 0;
    return json.Array([&] {
      switch (index++) {
        case 0:
          return json.String(entry.file);
        case 1:
          return json.Array([&] { return json.Int(entry.shape.emplace_back()); });
        default:
          return json.Skip();
      }
    });
  });
  return is_whole ? entries : std::vector<Entry>();
}

// {"type": "cuda", "index": 0}
bool ReadDevice(JsonReader& json, std::string& device) {
  int64_t index = -1;
  const bool is_whole = json.Object([&](std::string_view member) {
    if (member == "type") return json.String(device);
    return member == "index" && json.Peek() != 'n' ? json.Int(index) : json.Skip();
  });
  if (index >= 0 && device != "cpu") device += ':' + std::to_string(index);
  return is_whole;
}

// A dynamic size is no weight's.
bool ReadTensorMeta(JsonReader& json, Entry& entry) {
  int64_t type = 0;
  const auto read_size = [&] {
    return json.Object([&](std::string_view member) {
      return member == "as_int" && json.Int(entry.shape.emplace_back());
    });
  };
  const bool is_whole = json.Object([&](std::string_view member) {
    if (member == "dtype") return json.Int(type);
    if (member == "sizes") return json.Array(read_size);
    if (member == "device") return ReadDevice(json, entry.device);
    return json.Skip();
  });
  for (const SerializedType& known : kSerializedTypes) {
    if (known.number != type) continue;
    entry.dtype = known.dtype;
    entry.item_size_bytes = known.size_bytes;
  }
  return is_whole;
}

// Empty: of another shape.
std::vector<Entry> ReadExportedConfig(std::string_view text) {
  JsonReader json(text);
  std::vector<Entry> entries;
  const auto read_entry = [&](std::string_view name) {
    Entry& entry = entries.emplace_back();
    entry.name = JsonReader::Decoded(name);
    entry.is_raw = true;
    return json.Object([&](std::string_view member) {
      if (member == "path_name") return json.String(entry.file);
      if (member == "use_pickle" && json.Peek() == 't') entry.is_raw = false;
      if (member == "tensor_meta" && json.Peek() == '{') return ReadTensorMeta(json, entry);
      return json.Skip();
    });
  };
  const bool is_whole = json.Object([&](std::string_view member) {
    return member == "config" ? json.Object(read_entry) : json.Skip();
  });
  return is_whole ? entries : std::vector<Entry>();
}

uint64_t CountOf(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t size : shape) count *= size > 0 ? static_cast<uint64_t>(size) : 0;
  return count;
}

}  // namespace

std::vector<ModelWeight> ReadPackageWeights(ZipFile& zip, const std::vector<WeightsConfig>& configs,
                                            std::vector<std::string>& unread) {
  std::map<std::string, WeightFile> files;
  std::vector<ModelWeight> weights;
  for (const WeightsConfig& config : configs) {
    const bool is_exported = config.file.find(kWeights) != std::string::npos;
    std::vector<Entry> entries =
        is_exported ? ReadExportedConfig(config.text) : ReadConfig(config.text);
    if (entries.empty() && config.text.find(':') != std::string::npos)
      unread.push_back(config.file);
    for (Entry& entry : entries) {
      const auto [found, is_new] = files.try_emplace(entry.file);
      WeightFile& file = found->second;
      if (is_new) {
        for (const ZipFile::Member& member : zip.members()) {
          if (!std::string_view(member.name).ends_with(std::string(kWeights) + entry.file))
            continue;
          if (entry.is_raw) {
            file.size_bytes = member.size_bytes;
          } else {
            file = ReadWeightFile(zip, member, unread);
          }
        }
        file.ordinal = files.size();
      }
      ModelWeight& weight = weights.emplace_back();
      weight.name = configs.size() > 1 ? config.model + "/" + entry.name : entry.name;
      const bool says_type = entry.item_size_bytes != 0;
      weight.size_bytes =
          CountOf(entry.shape) * (says_type ? entry.item_size_bytes : file.item_size_bytes);
      weight.shape = std::move(entry.shape);
      weight.dtype = says_type ? entry.dtype : file.dtype;
      weight.device = entry.device.empty() ? file.device : entry.device;
      weight.storage_id = file.ordinal;
      weight.storage_size_bytes = file.size_bytes;
    }
  }
  return weights;
}

}  // namespace libtrace
