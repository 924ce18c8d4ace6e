/* When a path that nothing comes back over is used again, where the device goes around such a path
 * by itself (RD).
 *
 * It rests for half a second. Then it is *tried*: what is given to it first shows whether something
 * comes back, and nothing more is given to it until that is known. The device calls a path silent
 * until then, so being silent says nothing during a trial; a piece that has arrived, and the path
 * is silent still, has come another way. Then it rests for twice as long.
 *
 * Pure: whoever asks says what the device thinks of the path, what was given to it, and the time.
 */
#ifndef WEFT_MSG_SILENT_H
#define WEFT_MSG_SILENT_H

#include <stdbool.h>
#include <stdint.h>

enum msg_silent_state { MSG_SILENT_NOT, MSG_SILENT_RESTS, MSG_SILENT_TRIED };

/* Of one path; all zero to begin with. */
struct msg_silent {
	enum msg_silent_state state;
	uint64_t until, pause; /* ns: the last rest, and how long it was */
	uint64_t given;        /* pieces, when the trial began */
};

/* Whether it is to be used. given: pieces so far; out: of these, those that are under way. */
bool msg_silent_use(struct msg_silent *s, bool silent, uint64_t given, uint32_t out, uint64_t now);

#endif
