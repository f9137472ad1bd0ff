# The sources of tlparse_base, relative to this directory.
set(TLPARSE_BASE_SOURCES
  arena.cc
  find_logs.cc
  glog_time.cc
  import_code.cc
  input.cc
  json_repair.cc
  json_writer.cc
  md5.cc
  md5_lanes.cc
  payload_index.cc
  payload_run.cc
  remove_on_signal.cc
  utf8.cc
)
