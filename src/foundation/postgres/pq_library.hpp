// Loads libpq when the first connection is made (os/shared_library.hpp), because most servers have
// their ledger in a file, and libpq also loads Kerberos and LDAP.
//
// Threads: callable from anywhere. Errors: none; the package depends on the library. Lifetime: the
// library is never unloaded.
#pragma once

#include <libpq-fe.h>

namespace trainyard::postgres {

// The used functions of libpq.
#define TRAINYARD_PQ_FUNCTIONS(EACH) \
  EACH(PQclear)                      \
  EACH(PQcmdTuples)                  \
  EACH(PQconnectPoll)                \
  EACH(PQconnectStartParams)         \
  EACH(PQconnectdbParams)            \
  EACH(PQconnectionNeedsPassword)    \
  EACH(PQconnectionUsedPassword)     \
  EACH(PQconninfoFree)               \
  EACH(PQconninfoParse)              \
  EACH(PQconsumeInput)               \
  EACH(PQenterPipelineMode)          \
  EACH(PQerrorMessage)               \
  EACH(PQexec)                       \
  EACH(PQexecParams)                 \
  EACH(PQexitPipelineMode)           \
  EACH(PQfinish)                     \
  EACH(PQflush)                      \
  EACH(PQfname)                      \
  EACH(PQfreemem)                    \
  EACH(PQftype)                      \
  EACH(PQgetResult)                  \
  EACH(PQgetisnull)                  \
  EACH(PQgetlength)                  \
  EACH(PQgetvalue)                   \
  EACH(PQisBusy)                     \
  EACH(PQnfields)                    \
  EACH(PQntuples)                    \
  EACH(PQpipelineSync)               \
  EACH(PQresultErrorField)           \
  EACH(PQresultErrorMessage)         \
  EACH(PQresultStatus)               \
  EACH(PQsendPrepare)                \
  EACH(PQsendQuery)                  \
  EACH(PQsendQueryParams)            \
  EACH(PQsendQueryPrepared)          \
  EACH(PQsetClientEncoding)          \
  EACH(PQsetNoticeProcessor)         \
  EACH(PQsetSingleRowMode)           \
  EACH(PQsetnonblocking)             \
  EACH(PQsocket)                     \
  EACH(PQstatus)

struct PqFunctions {
#define TRAINYARD_MEMBER(name) decltype(&::name) name;
  TRAINYARD_PQ_FUNCTIONS(TRAINYARD_MEMBER)
#undef TRAINYARD_MEMBER
};

// Returns the functions. The first call loads the library.
const PqFunctions& pq();

}  // namespace trainyard::postgres
