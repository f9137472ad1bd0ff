# Joins the artifact families: every src/artifacts/<stem>.cc needs schemas/sql/artifacts/<stem>.sql and
# fixtures/artifacts/<stem>.test; a missing one is a configure error. Writes the table AllArtifacts() and the embedded schema.
set(sql_directory "${PROJECT_SOURCE_DIR}/schemas/sql")
file(GLOB artifact_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/artifacts/*.cc")
set(artifact_stems "")
foreach(source IN LISTS artifact_sources)
  cmake_path(GET source STEM stem)
  foreach(sibling IN ITEMS "${sql_directory}/artifacts/${stem}.sql" "${PROJECT_SOURCE_DIR}/fixtures/artifacts/${stem}.test")
    if(NOT EXISTS "${sibling}")
      message(FATAL_ERROR "artifact '${stem}' lacks ${sibling}: a family is <stem>.cc, <stem>.sql and <stem>.test")
    endif()
  endforeach()
  list(APPEND artifact_stems "${stem}")
endforeach()
file(GLOB artifact_sql CONFIGURE_DEPENDS "${sql_directory}/artifacts/*.sql")
file(GLOB runtime_sql CONFIGURE_DEPENDS "${sql_directory}/runtime/*.sql")
file(GLOB view_sql CONFIGURE_DEPENDS "${sql_directory}/views/*.sql")
set(schema_sql "${sql_directory}/core.sql" ${artifact_sql} ${runtime_sql} ${view_sql})
set(row_type_headers "")
foreach(script IN LISTS schema_sql)
  cmake_path(GET script STEM stem)
  file(STRINGS "${script}" creates_table REGEX "^CREATE TABLE " LIMIT_COUNT 1)
  if(creates_table)
    list(APPEND row_type_headers "${CMAKE_CURRENT_BINARY_DIR}/row_types/rows/${stem}.h")
  endif()
endforeach()
set(artifact_table "${CMAKE_CURRENT_BINARY_DIR}/artifact_table.cc")
set(schema_source "${CMAKE_CURRENT_BINARY_DIR}/schema_sql.cc")
set(generator "${CMAKE_CURRENT_SOURCE_DIR}/cmake/Generate.cmake")
add_custom_command(OUTPUT "${artifact_table}"
  COMMAND "${CMAKE_COMMAND}" "-DWHAT=artifacts" "-DSTEMS=${artifact_stems}" "-DOUT=${artifact_table}" -P "${generator}"
  DEPENDS "${generator}" VERBATIM)
add_custom_command(OUTPUT "${schema_source}"
  COMMAND "${CMAKE_COMMAND}" "-DWHAT=schema" "-DFILES=${schema_sql}" "-DINDEXES=${sql_directory}/indexes.sql"
    "-DOUT=${schema_source}" -P "${generator}"
  DEPENDS "${generator}" ${schema_sql} "${sql_directory}/indexes.sql" VERBATIM)
file(GLOB viewer_sql CONFIGURE_DEPENDS "${sql_directory}/viewer/*.sql")
set(viewer_tables "${CMAKE_CURRENT_BINARY_DIR}/viewer_sql.cc")
add_custom_command(OUTPUT "${viewer_tables}"
  COMMAND "${CMAKE_COMMAND}" "-DWHAT=viewer" "-DFILES=${viewer_sql}" "-DOUT=${viewer_tables}" -P "${generator}"
  DEPENDS "${generator}" ${viewer_sql} VERBATIM)
