// Trains with ranks that join and leave: membership/service.hpp and membership/member.hpp in C. The
// launcher of the processes runs a trainyard_membership, which assigns ranks; each process is a
// trainyard_member.
//
//   trainyard_member_options options = {.size = sizeof options, .service_host = "10.0.0.1",
//                                       .service_port = 7000, .secret = "s", .name = "b/0 #1",
//                                       .host = "b", .wanted_rank = -1};
//   trainyard_member_connect(&options, &member, message);
//   for (;;) {
//     trainyard_assignment assignment = {.size = sizeof assignment};
//     if (trainyard_member_next(member, complaint, at_most_ms, &assignment, message)) break;
//     if (trainyard_member_join(member, &join, &group, message)) continue;  // a rank has died
//     ...                                              // train, commit, trainyard_member_changed()
//     trainyard_group_free(group);
//   }
//   trainyard_member_done(member);
//   trainyard_member_free(member);
//
// Library, errors: as trainyard_collectives.h. Threads: confined to one at a time, except
// trainyard_member_changed, which may be called from any thread. Units: durations are milliseconds.
#pragma once

#include "capi/trainyard_collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trainyard_membership trainyard_membership;
typedef struct trainyard_member trainyard_member;

typedef struct {
  size_t size;       // sizeof this struct
  const char* host;  // where to listen
  int port;          // 0: any free port
  const char* secret;
  int ranks_min;
  int ranks_max;
  int64_t settle_ms;    // time for members to return, and for started members to apply
  int generations_max;  // 0: no limit
} trainyard_membership_options;

typedef enum {
  TRAINYARD_MEMBER_CAME = 0,
  TRAINYARD_GENERATION_FORMED,
  TRAINYARD_MEMBER_DONE,
  TRAINYARD_MEMBER_LOST,
  TRAINYARD_MEMBER_DISMISSED
} trainyard_membership_event_kind;

typedef struct {
  size_t size;  // sizeof this struct
  trainyard_membership_event_kind kind;
  // name of the member; empty for a generation. Lives until the next event is read.
  const char* name;
  const char* text;     // a log line; lives as long as `name`
  uint64_t generation;  // TRAINYARD_GENERATION_FORMED
  int ranks;            // TRAINYARD_GENERATION_FORMED
} trainyard_membership_event;

TRAINYARD_PUBLIC trainyard_kind trainyard_membership_start(
    const trainyard_membership_options* options, trainyard_membership** membership, char* message);
TRAINYARD_PUBLIC void trainyard_membership_free(trainyard_membership* membership);
TRAINYARD_PUBLIC int trainyard_membership_port(const trainyard_membership* membership);
// Announces a process with this name, which was started and will connect.
TRAINYARD_PUBLIC void trainyard_membership_expect(trainyard_membership* membership,
                                                  const char* name);
// Reports that a process has ended. `reason` is empty if it ended successfully.
TRAINYARD_PUBLIC void trainyard_membership_gone(trainyard_membership* membership, const char* name,
                                                const char* reason);
// Request that the members of a host leave, or cancel that request.
TRAINYARD_PUBLIC void trainyard_membership_host_leaves(trainyard_membership* membership,
                                                       const char* host);
TRAINYARD_PUBLIC void trainyard_membership_host_returns(trainyard_membership* membership,
                                                        const char* host);
// Waits at most `at_most_ms` for the next event. Returns 1 if there is one, else 0.
TRAINYARD_PUBLIC int trainyard_membership_next(trainyard_membership* membership, int64_t at_most_ms,
                                               trainyard_membership_event* event);
// Describes for what the next generation waits; "" if it waits for nothing. The caller frees the
// text with trainyard_text_free.
TRAINYARD_PUBLIC char* trainyard_membership_missing(const trainyard_membership* membership);

typedef struct {
  size_t size;  // sizeof this struct
  const char* service_host;
  int service_port;
  const char* secret;
  const char* name;  // unique in the training
  const char* host;  // members of one host are its local ranks
  int wanted_rank;   // -1: any
} trainyard_member_options;

// The position of a member in a generation.
typedef struct {
  size_t size;  // sizeof this struct
  uint64_t generation;
  int rank;
  int ranks;
  int local_rank;
  int local_ranks;
} trainyard_assignment;

// The bits that trainyard_member_changed returns.
typedef enum { TRAINYARD_MEMBERS_ADDED = 1, TRAINYARD_MEMBERS_REMOVED = 2 } trainyard_changes;

TRAINYARD_PUBLIC trainyard_kind trainyard_member_connect(const trainyard_member_options* options,
                                                         trainyard_member** member, char* message);
// Leaves the training, which the other members continue.
TRAINYARD_PUBLIC void trainyard_member_free(trainyard_member* member);
// Waits at most `at_most_ms` for the next generation with this member. `complaint` is why it left
// the previous one; null or empty if nothing failed. Free the previous group first.
// Errors: denied, if the member is dismissed.
TRAINYARD_PUBLIC trainyard_kind trainyard_member_next(trainyard_member* member,
                                                      const char* complaint, int64_t at_most_ms,
                                                      trainyard_assignment* assignment,
                                                      char* message);
// Joins the group of the last assignment. Ignores these members of `join`: rank, ranks, hosts,
// ports, secret, rendezvous, from_launcher.
TRAINYARD_PUBLIC trainyard_kind trainyard_member_join(trainyard_member* member,
                                                      const trainyard_join* join,
                                                      trainyard_group** group, char* message);
// Returns the changes since the last assignment, as bits of trainyard_changes.
TRAINYARD_PUBLIC int trainyard_member_changed(const trainyard_member* member);
// Reports to the service that this member ends successfully.
TRAINYARD_PUBLIC void trainyard_member_done(trainyard_member* member);

#ifdef __cplusplus
}
#endif
