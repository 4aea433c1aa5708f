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
// Library, errors: as trainyard_collectives.h. Threads: one at a time, but
// trainyard_member_changed from anywhere. Units: durations are milliseconds.
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
  int port;          // 0: any free one
  const char* secret;
  int ranks_min;
  int ranks_max;
  int64_t settle_ms;    // for members to return, and for started ones to come
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
  const char* name;  // of the member; empty for a generation. Lives until the next event is read.
  const char* text;  // for people; lives as long
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
// Reports that a process has ended. `reason` is empty when it ended successfully.
TRAINYARD_PUBLIC void trainyard_membership_gone(trainyard_membership* membership, const char* name,
                                                const char* reason);
// Tells the members of a host to leave, or that they may stay after all.
TRAINYARD_PUBLIC void trainyard_membership_host_leaves(trainyard_membership* membership,
                                                       const char* host);
TRAINYARD_PUBLIC void trainyard_membership_host_returns(trainyard_membership* membership,
                                                        const char* host);
// Waits at most this long for the next event. Returns 1 when there is one.
TRAINYARD_PUBLIC int trainyard_membership_next(trainyard_membership* membership, int64_t at_most_ms,
                                               trainyard_membership_event* event);
// Returns what the next generation waits for, "" for nothing: a text that the caller frees with
// trainyard_text_free.
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

// The place of a member in a generation.
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
// Leaves; the other members continue.
TRAINYARD_PUBLIC void trainyard_member_free(trainyard_member* member);
// Waits at most this long for the next generation with this member. `complaint` says why it left
// the previous one; null or empty when nothing failed. Free the previous group first.
// Errors: denied, when the member is dismissed.
TRAINYARD_PUBLIC trainyard_kind trainyard_member_next(trainyard_member* member,
                                                      const char* complaint, int64_t at_most_ms,
                                                      trainyard_assignment* assignment,
                                                      char* message);
// Joins the group of the last assignment. Of `join`, these members are not used: rank, ranks,
// hosts, ports, secret, rendezvous, from_launcher.
TRAINYARD_PUBLIC trainyard_kind trainyard_member_join(trainyard_member* member,
                                                      const trainyard_join* join,
                                                      trainyard_group** group, char* message);
// Returns which changes wait since the last assignment.
TRAINYARD_PUBLIC int trainyard_member_changed(const trainyard_member* member);
// Tells the service that this member ends successfully.
TRAINYARD_PUBLIC void trainyard_member_done(trainyard_member* member);

#ifdef __cplusplus
}
#endif
