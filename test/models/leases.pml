/* Leases on Redis: one id, one window (at most N uses in any interval I), H holders, one server.
 *
 * Time is discrete. A state has the server's record, the holders, the messages on their way, and
 * g[]. All times in it are relative to now, so runs have any length.
 *
 *   g[a]: the uses a ticks ago by the reference clock, which is the server's clock with its steps
 *         forward and without its steps backward. The promise: sum(g[0..I-1]) <= N, always.
 *
 * At any moment, the environment may
 * - lose, delay, reorder or (DUP times in a run) repeat a message; lose or delay a reply
 * - let a holder time out; crash and restart it; suspend it, so that its monotonic clock stands
 *   still
 * - for each lease, let the holder's clocks lose one tick and gain one
 * - step the server's clock forward, or pause a holder's machine, which none of its clocks shows:
 *   ERR ticks in a run, together
 * - step the server's clock backward by 2 ticks, BACK times in a run
 * - with LOST: remove the server's state.
 *
 * The server may grant any number of permits up to the room. So the rule of how many it grants, and
 * when a holder asks, are not part of the model.
 *
 * runs.mjs has the definitions. BROKEN=n breaks one rule. Each of these must violate the promise:
 *    1 a lease counts only until its end, not for the interval after it
 *    2 the holder measures a lease from the reply, not from the request
 *    3 ages of uses are too large
 *    4 the server has no guard
 *    5 the holder measures a lease by the monotonic clock, which stands still in suspend
 *    6 the settlement of a lease that the server does not know gives its permits back
 *    7 a settlement is matched by its holder, not by its lease
 *    8 the holder uses permits after it has sent the settlement
 *    9 ages are taken from the largest clock, and the wall clock may jump
 *   10 late uses are recorded at the end of the lease at the latest, not at its end plus the guard
 *   11 the end of a lease has no margin for the rates of clocks
 *   12 ages have no margin for the rates of clocks
 */
#define NONE 255
#define U (I + 1)
#if BROKEN == 4
#define GS 0
#else
#define GS G
#endif
#if BROKEN == 11
#define LAST D          /* permits are used while the elapsed time is <= LAST */
#else
#define LAST (D - 1)
#endif
#define OVER (D + 1)    /* elapsed times stop here */
#define LIFE (D + I + GS)

byte g[I];
/* Server. Its stamps are relative to `newest`, the latest time that it has saved. */
short x;                           /* its clock minus newest */
byte log_[I];                      /* recorded uses by their age */
byte lh[L], lq[L], lk[L], lr[L];   /* leases: holder, number, permits, ticks that it still counts */
byte nl;                           /* how many */
/* What happened: ticks of ERR, steps backward, repetitions, permits of BROKEN 6, losses of state */
byte err, back, dups, credit, losses;
/* Holders. q, bal, el, us: the open lease (0: none), its balance, its elapsed time, its uses by
 * age. p, pel, rk: the lease that is asked for, the elapsed time, the permits in the reply (NONE: no
 * reply yet). sl, fa: whether a clock has lost or gained a tick. */
byte q[H], bal[H], el[H], us[H * U], p[H], pel[H], rk[H], sl[H], fa[H];
#if BROKEN == 5
byte lem[H], pem[H];
#endif
#if BROKEN == 8
byte stale[H];
#endif
/* Messages: on its way, holder, settled lease, wanted lease, balance (BROKEN 6), uses by age */
byte mon[M], mh[M], mo[M], mq[M], mb[M], mu[M * I];

/* Variables of a step; 0 between steps */
byte i, j, c, s, h, m, k, room, used, rem, own, age;
short sum;
#define CLEAN i = 0; j = 0; c = 0; s = 0; h = 0; m = 0; k = 0; room = 0; used = 0; rem = 0; \
  own = 0; age = 0; sum = 0

inline check_ghost() {
  sum = 0; i = 0;
  do :: i < I -> sum = sum + g[i]; i++ :: else -> break od;
  assert(sum <= N * (1 + LOST))
}
inline use_now() { g[0] = g[0] + 1; check_ghost() }
inline age_ghost() {
  i = I - 1;
  do :: i > 0 -> g[i] = g[i - 1]; i-- :: else -> break od;
  g[0] = 0
}
inline remove_lease(n_) {
  i = n_;
  do :: i + 1 < nl -> lh[i] = lh[i + 1]; lq[i] = lq[i + 1]; lk[i] = lk[i + 1]; lr[i] = lr[i + 1]; i++
     :: else -> break od;
  nl--; lh[nl] = 0; lq[nl] = 0; lk[nl] = 0; lr[nl] = 0
}
/* Makes the server's stamps relative to now = max(clock, newest), and drops what has expired. */
inline rebase() {
  do
  :: x > 0 ->
    i = I - 1;
    do :: i > 0 -> log_[i] = log_[i - 1]; i-- :: else -> break od;
    log_[0] = 0; j = 0;
    do
    :: j < nl ->
      lr[j] = lr[j] - 1;
      if
#if BROKEN == 1
      :: lr[j] <= I + GS -> remove_lease(j)
#else
      :: lr[j] == 0 -> remove_lease(j)
#endif
      :: else -> j++
      fi
    :: else -> break
    od;
    x--
  :: else -> break
  od
}
/* A server's state without uses and leases is the same at every time: its key may have expired. */
inline tidy() {
  if :: nl == 0 && x > 0 ->
    i = 0; c = 0;
    do :: i < I -> c = c + log_[i]; i++ :: else -> break od;
    if :: c == 0 -> x = 0 :: else fi
  :: else
  fi
}
inline clear_message() {
  mon[m] = 0; mh[m] = 0; mo[m] = 0; mq[m] = 0; mb[m] = 0; i = 0;
  do :: i < I -> mu[m * I + i] = 0; i++ :: else -> break od
}
inline record() { log_[age] = log_[age] + c; if :: log_[age] > N -> log_[age] = N :: else fi }
inline find_room() {
  used = 0; i = 0;
  do :: i < I -> used = used + log_[i]; i++ :: else -> break od;
  i = 0;
  do :: i < nl -> used = used + lk[i]; i++ :: else -> break od;
  room = 0; if :: used < N + credit -> room = N + credit - used :: else fi
}
/* Steps of the script: settles message m, finds the room, and whether a lease may be granted: own. */
inline settle_and_judge() {
  rebase();
  if
  :: mo[m] != 0 ->
    own = NONE; i = 0;
    do
    :: i < nl ->
      if
#if BROKEN == 7
      :: lh[i] == mh[m] -> own = i
#else
      :: lh[i] == mh[m] && lq[i] == mo[m] -> own = i
#endif
      :: else
      fi; i++
    :: else -> break
    od;
    rem = LIFE; if :: own != NONE -> rem = lr[own]; remove_lease(own) :: else fi;
#if BROKEN == 6
    if :: own == NONE -> credit = credit + mb[m]; if :: credit > N -> credit = N :: else fi :: else fi;
#endif
    j = 0;
    do
    :: j < I ->
      c = mu[m * I + j]; age = j;
      if :: c > 0 ->
#if BROKEN == 10
        if :: I + G > rem && I + G - rem > age -> age = I + G - rem :: else fi;
#else
        if :: I > rem && I - rem > age -> age = I - rem :: else fi;
#endif
        if :: age < I -> record() :: else fi
      :: else fi; j++
    :: else -> break
    od
  :: else
  fi;
  find_room();
  own = 0;
  if :: mq[m] != 0 && nl < L -> own = 1; i = 0;
    do
    :: i < nl -> if :: lh[i] == mh[m] && lq[i] == mq[m] -> own = 0 :: else fi; i++
    :: else -> break
    od
  :: else fi
}
inline age_uses(h_) {   /* by the smallest clock */
  i = U - 1;
  do :: i > 0 -> us[h_ * U + i] = us[h_ * U + i - 1]; i-- :: else -> break od;
  us[h_ * U] = 0
}
inline ends(h_) {       /* a lease that cannot be used any more has one form */
#if BROKEN != 5
  if :: q[h_] && (el[h_] > LAST || bal[h_] == 0) -> el[h_] = OVER;
#if BROKEN != 6
    bal[h_] = 0
#endif
  :: else fi
#endif
  skip
}
inline max_clock(h_) {
  if :: q[h_] && el[h_] < OVER -> el[h_] = el[h_] + 1 :: else fi;
  if :: p[h_] && pel[h_] < OVER -> pel[h_] = pel[h_] + 1 :: else fi;
  ends(h_)
}
inline min_clock(h_) {
  age_uses(h_);
#if BROKEN == 5
  if :: q[h_] && lem[h_] < OVER -> lem[h_] = lem[h_] + 1 :: else fi;
  if :: p[h_] && pem[h_] < OVER -> pem[h_] = pem[h_] + 1 :: else fi;
#endif
  skip
}
/* How a holder's clocks take a tick: 0 they show it, 1 they lose it, 2 they gain another one,
 * 3 the machine is paused and no clock shows it, 4 it is suspended and only the largest shows it. */
#define MAY(h_, c_) (c_ == 0 || ((q[h_] || p[h_]) && \
  ((c_ == 1 && !sl[h_] && DRIFT) || (c_ == 2 && !fa[h_] && DRIFT) || \
   (c_ == 3 && err < ERR) || (c_ == 4 && SUSPEND))))
inline tick_holder(h_, c_) {
  if
  :: c_ == 0 -> max_clock(h_); min_clock(h_)
  :: c_ == 1 -> sl[h_] = 1
  :: c_ == 2 -> fa[h_] = 1; max_clock(h_); min_clock(h_); max_clock(h_); min_clock(h_)
  :: c_ == 3 -> err++
  :: c_ == 4 -> max_clock(h_)
  fi
}
inline drop_lease(h_) {
  q[h_] = 0; bal[h_] = 0; el[h_] = 0; i = 0;
  do :: i < U -> us[h_ * U + i] = 0; i++ :: else -> break od;
#if BROKEN == 5
  lem[h_] = 0;
#endif
  skip
}
inline no_pending(h_) {
  p[h_] = 0; pel[h_] = 0; rk[h_] = NONE;
  if :: !q[h_] -> sl[h_] = 0; fa[h_] = 0 :: else fi;
#if BROKEN == 5
  pem[h_] = 0;
#endif
  skip
}
/* Puts the settlement of the open lease, if there is one, into message m. */
inline compose(h_) {
  m = 0; do :: mon[m] -> m++ :: else -> break od;
  mon[m] = 1; mh[m] = h_; mo[m] = q[h_];
  if :: q[h_] ->
    mb[m] = 0;
#if BROKEN == 6
    mb[m] = bal[h_];
#endif
    i = 0;
    do
    :: i < U ->
      c = us[h_ * U + i];
      if :: c > 0 ->
#if BROKEN == 3
        age = 2 * i;
#elif BROKEN == 12
        age = i;
#else
        age = (i > 0 -> i - 1 : 0);   /* the margin */
#endif
        if :: age < I -> mu[m * I + age] = mu[m * I + age] + c :: else fi
      :: else fi; i++
    :: else -> break
    od
  :: else fi;
#if BROKEN != 8
  drop_lease(h_); sl[h_] = 0; fa[h_] = 0;
#endif
  skip
}
/* s: a number that no lease, request or message of this holder has; Q + 1 if there is none. */
inline fresh(h_) {
  s = 1;
  do
  :: s <= Q ->
    c = (q[h_] == s || p[h_] == s); i = 0;
    do :: i < nl -> c = c || (lh[i] == h_ && lq[i] == s); i++ :: else -> break od;
    i = 0;
    do :: i < M -> c = c || (mon[i] && mh[i] == h_ && (mo[i] == s || mq[i] == s)); i++ :: else -> break od;
    if :: c -> s++ :: else -> break fi
  :: else -> break
  od
}
#if M == 1
#define ROOM_FOR_MESSAGE (!mon[0])
#elif M == 2
#define ROOM_FOR_MESSAGE (!mon[0] || !mon[1])
#else
#define ROOM_FOR_MESSAGE (!mon[0] || !mon[1] || !mon[2])
#endif
#if BROKEN == 5
#define VALID(h_) (lem[h_] <= LAST)
#else
#define VALID(h_) (el[h_] <= LAST)
#endif

#define HOLDER(h_) \
  :: d_step { q[h_] && bal[h_] > 0 && VALID(h_) -> \
       bal[h_] = bal[h_] - 1; us[h_ * U] = us[h_ * U] + 1; use_now(); ends(h_); CLEAN } \
  :: d_step { !p[h_] && ROOM_FOR_MESSAGE -> /* asks for a lease and settles the open one */ \
       fresh(h_); \
       if \
       :: s <= Q -> k = s; compose(h_); mq[m] = k; p[h_] = k; pel[h_] = 0; rk[h_] = NONE \
       :: else \
       fi; CLEAN } \
  :: d_step { !p[h_] && q[h_] && ROOM_FOR_MESSAGE -> compose(h_); CLEAN }        /* only settles */ \
  :: d_step { p[h_] && rk[h_] != NONE -> /* takes the reply */ \
       if \
       :: rk[h_] > 0 -> drop_lease(h_); q[h_] = p[h_]; bal[h_] = rk[h_]; \
            el[h_] = (BROKEN == 2 -> 0 : pel[h_]); TAKE_MONO(h_) \
       :: else \
       fi; \
       no_pending(h_); ends(h_); CLEAN } \
  :: d_step { p[h_] -> no_pending(h_); CLEAN }  /* gives up */ \
  :: d_step { GIVEBACK && p[h_] && ROOM_FOR_MESSAGE -> k = p[h_]; no_pending(h_); \
       m = 0; do :: mon[m] -> m++ :: else -> break od; mon[m] = 1; mh[m] = h_; mo[m] = k; CLEAN } \
  :: d_step { q[h_] || p[h_] -> /* crashes, restarts */ \
       drop_lease(h_); no_pending(h_); sl[h_] = 0; fa[h_] = 0; CLEAN }
#if BROKEN == 5
#define TAKE_MONO(h_) lem[h_] = pem[h_]
#else
#define TAKE_MONO(h_) skip
#endif

/* The server runs the script and grants up to k_ permits. repeats_: 0 the message is done; 1 it will
 * arrive again; 2 the same, and this reply is lost, so the holder may take the next one. */
#define RUN(m_, k_, repeats_) \
  :: d_step { mon[m_] && (mq[m_] != 0 || (k_ == 0 && repeats_ != 2)) && (!repeats_ || dups < DUP) -> \
       m = m_; settle_and_judge(); \
       k = 0; if :: own -> k = k_; if :: k > room -> k = room :: else fi :: else fi; \
       if \
       :: k > 0 -> lh[nl] = mh[m_]; lq[nl] = mq[m_]; lk[nl] = k; lr[nl] = LIFE; nl++ \
       :: else \
       fi; \
       h = mh[m_]; \
       if \
       :: mq[m_] != 0 && p[h] == mq[m_] && rk[h] == NONE && repeats_ != 2 -> rk[h] = k \
       :: else \
       fi; \
       if :: repeats_ -> dups++ :: else -> clear_message() fi; tidy(); CLEAN }
#if N == 2
#define RUNS(m_, r_) RUN(m_, 0, r_) RUN(m_, 1, r_) RUN(m_, 2, r_)
#else
#define RUNS(m_, r_) RUN(m_, 0, r_) RUN(m_, 1, r_) RUN(m_, 2, r_) RUN(m_, 3, r_)
#endif
#define MESSAGE(m_) \
  RUNS(m_, 0) \
  RUNS(m_, 1) \
  RUNS(m_, 2) \
  :: d_step { mon[m_] -> m = m_; clear_message(); CLEAN }   /* is lost */
#define TIME_OF_SERVER age_ghost(); x++; if :: back == BACK || x >= LIFE -> rebase() :: else fi; tidy()
#if H > 1
#define TICK(c0_, c1_) :: d_step { MAY(0, c0_) && MAY(1, c1_) && !(c0_ == 3 && c1_ == 3 && err + 1 >= ERR) -> \
  tick_holder(0, c0_); tick_holder(1, c1_); TIME_OF_SERVER; CLEAN }
#define TICKS(c_) TICK(c_, 0) TICK(c_, 1) TICK(c_, 2) TICK(c_, 3) TICK(c_, 4)
#else
#define TICKS(c_) :: d_step { MAY(0, c_) -> tick_holder(0, c_); TIME_OF_SERVER; CLEAN }
#endif

init {
  d_step { h = 0; do :: h < H -> rk[h] = NONE; h++ :: else -> break od; CLEAN };
  do
  HOLDER(0)
#if H > 1
  HOLDER(1)
#endif
  MESSAGE(0)
#if M > 1
  MESSAGE(1)
#endif
#if M > 2
  MESSAGE(2)
#endif
  TICKS(0) TICKS(1) TICKS(2) TICKS(3) TICKS(4)              /* a tick for all */
  :: d_step { err < ERR -> err++; TIME_OF_SERVER; CLEAN }   /* the server's clock steps forward */
  :: d_step { 1 -> rebase(); find_room();                   /* an attempt that the server decides */
       if :: room > 0 -> log_[0] = log_[0] + 1; use_now() :: else fi; tidy(); CLEAN }
#if LOST
  :: d_step { losses < LOST -> losses++; x = 0; i = 0;
       do :: i < I -> log_[i] = 0; i++ :: else -> break od;
       do :: nl > 0 -> remove_lease(0) :: else -> break od; CLEAN }
#endif
  :: d_step { back < BACK -> back++; x = x - 2; CLEAN }     /* backward */
#if BROKEN == 9
  :: d_step { q[0] -> max_clock(0); age_uses(0); CLEAN }  /* the holder's wall clock jumps */
#endif
  od
}
