# Brief: issue {id}{title}

Fill in each `<…>`. The bundle counts as planned once the slug is a name.

- **Slug:** <{slug}>
- **Defect (Goal):** <what is wrong, or what is wanted, in one or two sentences>
- **Success criterion:** <what can be observed when it is done>
- **Falsifiability:** <which test fails without the change and passes with it>
- **Invariant to restore:** <the rule that was broken, as it should hold from now on>
- **Repo + branch target:** <owner/repo @ branch; leave as it is if there is one target>
- **Depends on:** <ids that must be complete first, such as 12, #15; or none>
- **Conflicts with:** <ids that must not be in work at the same time; or none>
- **Touches:** <paths that will probably change>
- **Surfaces:** <what of the product shows the change: api, cli, gui, docs>
- **Difficulty:** <low, medium or high>
- **Scope:** <what belongs to it, and what does not>
- **Repro instruction:** <how to see the defect>
- **External dependencies:** <what must be there to build or verify it; or none>
- **Test file:** <path of the test the change ships>
- **Citations expected:** <documents the change must agree with; or none>
- **Prior-art check:** <earlier attempts and what became of them; or none>
- **Disposition hint:** <fix, or why it may be closed without one: duplicate, by-design, …>
