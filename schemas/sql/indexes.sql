-- Indexes, made after the load. Few: each costs as much as the rows themselves.
-- Records of one compile, without the kinds that come by the thousand (text ids 1 … 8: see text_pool.h).
CREATE INDEX record_by_compile ON record_row(compile_id) WHERE compile_id IS NOT NULL AND kind_id > 8;
CREATE INDEX compile_by_label ON compile(process_id, label);
CREATE INDEX graph_by_compile ON graph(compile_id);
