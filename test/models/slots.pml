/* Slots on Redis: at most MAX slots of one id are held at once, by H holders, with one server.
 *
 * Time is discrete and relative to now, so runs have any length. The server has a record for each
 * slot: holder, token, ticks that it still lives. A holder believes in its slot while the largest
 * elapsed time of its clocks, since it SENT the last request that was answered with yes (acquire or
 * renew), is at most LAST. Then the slot is lost.
 *
 * The promises: at most MAX holders believe at once; and a record that its holder does not know,
 * and that no message on its way names, is gone after LIFE ticks (no leak).
 *
 * At any moment, the environment may
 * - lose, delay, reorder or (DUP times in a run) repeat a message; lose or delay a reply
 * - let a holder give up; crash and restart it; suspend it, so that its monotonic clock stands
 *   still
 * - let a holder's clocks lose one tick between two renewals (a gained one only ends a slot earlier)
 * - step the server's clock forward, or pause a holder's machine, which none of its clocks shows:
 *   ERR ticks in a run, together
 * - step the server's clock backward by a tick, BACK times in a run.
 *
 * runs.mjs has the definitions. BROKEN=n breaks one rule. Each of these except 2 must violate a promise:
 *    1 the server has no guard
 *    2 a renewal creates a record that is missing. This is right while the state is kept
 *    3 a release removes one of the holder's records, not that of its token
 *    4 a renewal renews all records of the holder
 *    5 the holder measures by the monotonic clock, which stands still in suspend
 *    6 a slot counts from the reply, not from the request
 *    7 a grant is taken however late it comes
 *    8 the end of a slot has no margin for the rates of clocks
 *    9 a slot is lost only when the server says so
 *   10 a release removes any record
 */
#if BROKEN == 1
#define LIFE T
#else
#define LIFE (T + G)
#endif
#if BROKEN == 8
#define LAST (T - 1)
#else
#define LAST (T - 2)
#endif
#define OVER (T + 1)
#define NO 1
#define YES 2
#define ACQUIRE 1
#define RENEW 2
#define RELEASE 3
/* Server: holder, token, ticks that are left, ticks for which nobody knew the record */
byte rh[MAX], rt[MAX], rr[MAX], ro[MAX];
/* What has happened: ticks of ERR, steps backward, repetitions */
byte err, back, dups;
/* Holders. t, el: token of the slot (0: none), elapsed time. p, pel, pr: token that is asked for,
 * elapsed time, reply (0: none yet). r, rel, rrep: the same of a renewal. sl, rsl: whether a clock
 * has lost a tick, since the last request with a yes and since the renewal. */
byte t[H], el[H], p[H], pel[H], pr[H], r[H], rel[H], rrep[H], sl[H], rsl[H];
#if BROKEN == 5
byte mel[H], mpel[H], mrel[H];
#endif
/* Messages: kind (0: none), holder, token */
byte mk[M], mh[M], mt[M];
/* Variables of a step; 0 between steps. mute: the reply is lost. */
byte i, j, c, s, h, m, k, mute;
#define CLEAN i = 0; j = 0; c = 0; s = 0; h = 0; m = 0; k = 0; mute = 0
#if BROKEN == 5
#define BELIEVES(h_) (t[h_] && mel[h_] <= LAST)
#elif BROKEN == 9
#define BELIEVES(h_) (t[h_])
#else
#define BELIEVES(h_) (t[h_] && el[h_] <= LAST)
#endif
inline check() {
  c = 0; h = 0;
  do :: h < H -> if :: BELIEVES(h) -> c++ :: else fi; h++ :: else -> break od;
  assert(c <= MAX) }
inline let_go(h_) { t[h_] = 0; el[h_] = 0; r[h_] = 0; rel[h_] = 0; rrep[h_] = 0; rsl[h_] = 0;
#if BROKEN == 5
  mel[h_] = 0; mrel[h_] = 0;
#endif
  if :: !p[h_] -> sl[h_] = 0 :: else fi }
inline no_pending(h_) { p[h_] = 0; pel[h_] = 0; pr[h_] = 0;
#if BROKEN == 5
  mpel[h_] = 0;
#endif
  if :: !t[h_] -> sl[h_] = 0 :: else fi }
inline no_renewal(h_) { r[h_] = 0; rel[h_] = 0; rrep[h_] = 0; rsl[h_] = 0;
#if BROKEN == 5
  mrel[h_] = 0;
#endif
  skip }
inline lost(h_) {   /* lets go of a slot whose time is over */
#if BROKEN != 9
  if :: t[h_] && !BELIEVES(h_) -> let_go(h_) :: else fi
#endif
  skip }
inline max_clock(h_) {
  if :: t[h_] && el[h_] < OVER -> el[h_]++ :: else fi;
  if :: p[h_] && pel[h_] < OVER -> pel[h_]++ :: else fi;
  if :: r[h_] && rel[h_] < OVER -> rel[h_]++ :: else fi }
inline min_clock(h_) {
#if BROKEN == 5
  if :: t[h_] && mel[h_] < OVER -> mel[h_]++ :: else fi;
  if :: p[h_] && mpel[h_] < OVER -> mpel[h_]++ :: else fi;
  if :: r[h_] && mrel[h_] < OVER -> mrel[h_]++ :: else fi
#endif
  skip }
inline compact() {  /* moves records to the front */
  i = 0; j = 0;
  do :: i < MAX ->
    if
    :: rr[i] > 0 ->
      if
      :: i != j -> rh[j] = rh[i]; rt[j] = rt[i]; rr[j] = rr[i]; ro[j] = ro[i]; rr[i] = 0
      :: else
      fi; j++
    :: else
    fi;
    i++
  :: else -> break od;
  do :: j < MAX -> rh[j] = 0; rt[j] = 0; rr[j] = 0; ro[j] = 0; j++ :: else -> break od }
inline known(n_) {  /* c: whether the holder or a message knows record n_ */
  c = (t[rh[n_]] == rt[n_] || p[rh[n_]] == rt[n_] || r[rh[n_]] == rt[n_]); j = 0;
  do :: j < M -> c = c || (mk[j] && mh[j] == rh[n_] && mt[j] == rt[n_]); j++ :: else -> break od }
inline server_tick() {
  i = 0; do :: i < MAX -> if :: rr[i] > 0 -> rr[i]-- :: else fi; i++ :: else -> break od; compact() }
inline watch() {    /* looks for leaks, once a tick */
#if LEAKS
  i = 0;
  do
  :: i < MAX ->
    if
    :: rr[i] > 0 ->
      known(i);
      if :: c -> ro[i] = 0 :: else -> ro[i]++; assert(ro[i] <= LIFE + BACK) fi
    :: else
    fi; i++
  :: else -> break
  od
#endif
  skip }
/* k: the record of message m; MAX if there is none. */
inline find() {
  k = MAX; i = 0;
  do
  :: i < MAX -> if :: rr[i] > 0 && rh[i] == mh[m] && rt[i] == mt[m] -> k = i :: else fi; i++
  :: else -> break
  od }
inline serve() {
  find(); h = mh[m];
  if
  :: mk[m] == ACQUIRE ->
    c = NO;
    if :: k < MAX -> c = YES                                 /* this is a repetition */
       :: else -> i = 0; do :: i < MAX -> if :: rr[i] == 0 -> break :: else -> i++ fi :: else -> break od;
          if :: i < MAX -> rh[i] = h; rt[i] = mt[m]; rr[i] = LIFE; ro[i] = 0; c = YES :: else fi
    fi;
    if :: p[h] == mt[m] && !pr[h] && !mute -> pr[h] = c :: else fi
  :: mk[m] == RENEW ->
    c = NO;
    if :: k < MAX -> rr[k] = LIFE; c = YES
       :: else ->
#if BROKEN == 2
          i = 0; do :: i < MAX -> if :: rr[i] == 0 -> break :: else -> i++ fi :: else -> break od;
          if :: i < MAX -> rh[i] = h; rt[i] = mt[m]; rr[i] = LIFE; ro[i] = 0; c = YES :: else fi;
#endif
          skip
    fi;
#if BROKEN == 4
    i = 0; do :: i < MAX -> if :: rr[i] > 0 && rh[i] == h -> rr[i] = LIFE :: else fi; i++ :: else -> break od;
#endif
    if :: r[h] == mt[m] && !rrep[h] && !mute -> rrep[h] = c :: else fi
  :: mk[m] == RELEASE ->
#if BROKEN == 3
    k = MAX; i = 0; do :: i < MAX -> if :: rr[i] > 0 && rh[i] == h -> k = i :: else fi; i++ :: else -> break od;
#elif BROKEN == 10
    k = MAX; i = 0; do :: i < MAX -> if :: rr[i] > 0 -> k = i :: else fi; i++ :: else -> break od;
#endif
    if :: k < MAX -> rr[k] = 0; compact() :: else fi
  fi
}
inline clear_message() { mk[m] = 0; mh[m] = 0; mt[m] = 0 }
inline send(kind_, h_, token_) {
  m = 0; do :: mk[m] -> m++ :: else -> break od;
  mk[m] = kind_; mh[m] = h_; mt[m] = token_ }
#if M == 1
#define ROOM_FOR_MESSAGE (!mk[0])
#elif M == 2
#define ROOM_FOR_MESSAGE (!mk[0] || !mk[1])
#else
#define ROOM_FOR_MESSAGE (!mk[0] || !mk[1] || !mk[2])
#endif
inline fresh(h_) {
  s = 1;
  do :: s <= Q ->
    c = (t[h_] == s || p[h_] == s || r[h_] == s);
    i = 0; do :: i < MAX -> c = c || (rr[i] > 0 && rh[i] == h_ && rt[i] == s); i++ :: else -> break od;
    i = 0; do :: i < M -> c = c || (mk[i] && mh[i] == h_ && mt[i] == s); i++ :: else -> break od;
    if :: c -> s++ :: else -> break fi
  :: else -> break od }
#if BROKEN == 5
#define TAKE(to_, from_) mel[to_] = from_
#else
#define TAKE(to_, from_) skip
#endif
#define TAKES_LATE (BROKEN == 5 || BROKEN == 6 || BROKEN == 7 || BROKEN == 9)
#define HOLDER(h_) \
  :: d_step { !t[h_] && !p[h_] && ROOM_FOR_MESSAGE -> fresh(h_); \
       if :: s <= Q -> k = s; p[h_] = k; pel[h_] = 0; pr[h_] = 0; send(ACQUIRE, h_, k) :: else fi; \
       CLEAN } \
  :: d_step { p[h_] && pr[h_] -> /* takes the reply: granted, refused or too late */ \
       if \
       :: pr[h_] == YES && (pel[h_] <= LAST || TAKES_LATE) -> t[h_] = p[h_]; \
            el[h_] = (BROKEN == 6 || BROKEN == 7 -> 0 : pel[h_]); TAKE(h_, mpel[h_]); \
            no_pending(h_); lost(h_); check() \
       :: else -> no_pending(h_) \
       fi; CLEAN } \
  :: d_step { p[h_] -> no_pending(h_); CLEAN }  /* gives up */ \
  :: d_step { p[h_] && ROOM_FOR_MESSAGE -> /* gives up and releases */ \
       k = p[h_]; no_pending(h_); send(RELEASE, h_, k); CLEAN } \
  :: d_step { t[h_] && ROOM_FOR_MESSAGE -> k = t[h_]; let_go(h_); send(RELEASE, h_, k); CLEAN } \
  :: d_step { t[h_] && !r[h_] && ROOM_FOR_MESSAGE -> \
       r[h_] = t[h_]; rel[h_] = 0; rrep[h_] = 0; send(RENEW, h_, t[h_]); CLEAN } \
  :: d_step { t[h_] && r[h_] && rrep[h_] -> \
       if \
       :: rrep[h_] == YES -> el[h_] = (BROKEN == 6 -> 0 : rel[h_]); TAKE(h_, mrel[h_]); \
            sl[h_] = rsl[h_]; no_renewal(h_); lost(h_); check() \
       :: else -> let_go(h_) \
       fi; CLEAN } \
  :: d_step { r[h_] -> no_renewal(h_); CLEAN }  /* gives up a renewal */ \
  :: d_step { t[h_] || p[h_] -> no_pending(h_); let_go(h_); CLEAN }  /* crashes, restarts */
/* The server runs the script: the message is done, will arrive again, or will arrive again while this
 * reply is lost. Or the message is lost. */
#define MESSAGE(m_) \
  :: d_step { mk[m_] -> m = m_; serve(); m = m_; clear_message(); CLEAN } \
  :: d_step { mk[m_] && dups < DUP -> dups++; m = m_; serve(); CLEAN } \
  :: d_step { mk[m_] && dups < DUP && mk[m_] != RELEASE -> \
       dups++; m = m_; mute = 1; serve(); CLEAN } \
  :: d_step { mk[m_] -> m = m_; clear_message(); CLEAN }
/* How a holder's clocks take a tick: 0 they show it, 1 they lose it, 3 the machine is paused and no
 * clock shows it, 4 it is suspended and only the largest clock shows it. */
#define MAY(h_, c_) (c_ == 0 || ((t[h_] || p[h_]) && \
  ((c_ == 1 && !sl[h_]) || (c_ == 3 && err < ERR) || c_ == 4)))
inline tick_holder(h_, c_) {
  if
  :: c_ == 0 -> max_clock(h_); min_clock(h_)
  :: c_ == 1 -> sl[h_] = 1; if :: r[h_] -> rsl[h_] = 1 :: else fi
  :: c_ == 3 -> err++
  :: c_ == 4 -> max_clock(h_)
  fi; lost(h_) }
#define TICK(c0_, c1_) :: d_step { MAY(0, c0_) && MAY(1, c1_) && !(c0_ == 3 && c1_ == 3 && err + 1 >= ERR) -> \
  tick_holder(0, c0_); tick_holder(1, c1_); server_tick(); watch(); CLEAN }
#define TICKS(c_) TICK(c_, 0) TICK(c_, 1) TICK(c_, 3) TICK(c_, 4)
init {
  do
  HOLDER(0)
  HOLDER(1)
  MESSAGE(0)
#if M > 1
  MESSAGE(1)
#endif
#if M > 2
  MESSAGE(2)
#endif
  TICKS(0) TICKS(1) TICKS(3) TICKS(4)
  :: d_step { err < ERR -> err++; server_tick(); CLEAN }             /* the server's clock steps forward */
  :: d_step { back < BACK -> /* backward: a tick only for holders */
       back++; tick_holder(0, 0); tick_holder(1, 0); watch(); CLEAN }
  od
}
