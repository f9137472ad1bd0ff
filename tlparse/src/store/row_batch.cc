#include "store/row_batch.h"

namespace tlparse {

std::uint16_t NextRowTypeNumber() {
  static std::uint16_t next = 0;
  return next++;
}

TableId TableSet::Use(std::uint16_t row_type, std::string_view table,
                      std::span<const std::string_view> columns) {
  if (by_row_type_.size() <= row_type) by_row_type_.resize(row_type + 1u, kNoTable);
  TableId& id = by_row_type_[row_type];
  if (id == kNoTable) {
    id = static_cast<TableId>(tables_.size());
    tables_.push_back({table, columns});
  }
  return id;
}

}  // namespace tlparse
