// The functions of CUPTI that libtrace calls, as those of CUPTI 13.2 are on a machine without a
// driver: each call ends the process.
#include <cstdlib>

extern "C" {

#define CRASHES(name) \
  void name() { std::abort(); }
CRASHES(cuptiGetVersion)
CRASHES(cuptiActivityRegisterCallbacks)
CRASHES(cuptiActivityEnable)
CRASHES(cuptiActivityDisable)
CRASHES(cuptiActivityFlushAll)
CRASHES(cuptiActivityGetNextRecord)
CRASHES(cuptiActivityGetNumDroppedRecords)
CRASHES(cuptiActivityPushExternalCorrelationId)
CRASHES(cuptiActivityPopExternalCorrelationId)
CRASHES(cuptiGetResultString)
CRASHES(cuptiGetTimestamp)
CRASHES(cuptiSubscribe)
CRASHES(cuptiUnsubscribe)
CRASHES(cuptiActivityGetEnabledKinds)
#undef CRASHES

}  // extern "C"
