"""Plain mode: the app's acts as numbered menus, one line per change, for screen readers and scripts.

Three rules, each with tests:

- It does not mislead: the word of a state comes first, each answer is confirmed by a line, and a script stops at its first wrong answer,
  so that no later line answers another question than the one it was written for.
- It cannot be abused: a title, a name or a value is one line without control characters, and never looks like a line of a menu;
  confidential values are shown only after a question whose default is no.
- It costs little: no redraw and no animation, at most one line of progress in five seconds, and no numerical library before an act
    needs it.
"""
